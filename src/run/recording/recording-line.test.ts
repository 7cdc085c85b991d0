import fc from "fast-check";
import { expect, test } from "vitest";
import type { Input } from "../../episode/inputs/input.ts";
import { readRecordingLine, writeInputsLine } from "./recording-line.ts";

const place = { rolloutId: "t#0", attempt: 1, part: 0, hash: "" };

function generation(outputIds: readonly number[], logprobs: readonly number[]): Input {
  const pieces = [
    { requestId: "r", tokenCount: outputIds.length, policyVersion: "v", finish: "stop" as const },
  ];
  const value = { outputIds, logprobs, finish: { type: "stop" as const }, pieces, discarded: [] };
  return { type: "generation", promptHash: "p", outcome: { value } } as unknown as Input;
}

test("a turn's ids and logprobs are read as they were written, to the last bit", () => {
  const logprobs = fc.oneof(fc.double({ noNaN: true }), fc.float({ noNaN: true }));
  const drawn = fc.oneof(
    fc.array(fc.tuple(fc.nat(), logprobs)),
    fc.array(fc.tuple(fc.nat(200_000), fc.float({ noNaN: true }))),
  );
  fc.assert(
    fc.property(drawn, drawn, (first, second) => {
      const inputs = [first, second].map((turn) =>
        generation(
          turn.map(([id]) => id),
          turn.map(([, logprob]) => logprob),
        ),
      );
      const { text } = writeInputsLine(place, { times: [1], inputs });
      expect(readRecordingLine(Buffer.from(text), "")).toMatchObject({
        ...place,
        inputs,
        hash: expect.anything(),
      });
    }),
  );
});

test("so are those of a turn of a hundred thousand ids, and of the short one after it", () => {
  const ids = Array.from({ length: 100_000 }, (_, index) => 2 ** 31 - 1 - index);
  const inputs = [ids, [7], []].map((each) =>
    generation(
      each,
      each.map((id) => -id / 3),
    ),
  );
  const { text } = writeInputsLine(place, { times: [], inputs });
  expect(readRecordingLine(Buffer.from(text), "")?.type).toBe("inputs");
  const read = readRecordingLine(Buffer.from(text), "") as unknown as { inputs: Input[] };
  expect(read.inputs).toEqual(inputs);
});

test("logprobs take 32 bits where these are all of them, and 64 otherwise", () => {
  const written = [[-0.5, -0], [-0.1]].map((logprobs) => {
    const inputs = [generation([1, 300].slice(0, logprobs.length), logprobs)];
    const line = JSON.parse(writeInputsLine(place, { times: [], inputs }).text) as {
      readonly inputs: readonly [{ readonly outcome: { readonly value: object } }];
    };
    return line.inputs[0].outcome.value;
  });
  expect(written).toMatchObject([
    { ids: "AawC", logprobs: Buffer.from([0, 0, 0, 0xbf, 0, 0, 0, 0x80]).toString("base64") },
    { ids: "AQ==", logprobs64: "mpmZmZmZub8=" },
  ]);
  expect(written[1]).not.toHaveProperty("logprobs");
});

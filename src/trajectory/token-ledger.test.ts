import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Generation } from "../engine/engine.ts";
import { InvariantError, isOwnBug } from "../errors.ts";
import { hashIds } from "./rolling-hash.ts";
import { lossMask } from "./span.ts";
import { TokenLedger } from "./token-ledger.ts";

function generation(outputIds: number[], versions: [number, string][] = []): Generation {
  const pieces = versions.length === 0 ? [[outputIds.length, "7"] as const] : versions;
  return {
    outputIds,
    logprobs: outputIds.map((_, index) => -0.1 * (index + 1)),
    finish: { type: "stop", matched: outputIds.at(-1) ?? 0 },
    pieces: pieces.map(([tokenCount, policyVersion], index) => ({
      requestId: `r${index}`,
      tokenCount,
      policyVersion,
      finish: index === pieces.length - 1 ? "stop" : "abort",
    })),
    discarded: [],
  };
}

/** The list without its middle. */
function holed(list: readonly number[]): number[] {
  const copy = [...list];
  Reflect.deleteProperty(copy, "1");
  return copy;
}

describe("TokenLedger", () => {
  test("keeps the ids in the order in which they were appended", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1, 2, 3]);
    ledger.appendSampled(0, generation([10, 11]));
    ledger.appendEnvironment([20, 21]);
    ledger.appendSampled(1, generation([12, 99]));
    expect([...ledger.ids]).toEqual([1, 2, 3, 10, 11, 20, 21, 12, 99]);
    expect(lossMask(ledger.spans)).toEqual([0, 0, 0, 1, 1, 0, 0, 1, 1]);
    expect(ledger.promptLength).toBe(3);
  });

  test("appendSampled() refuses logprobs of another length", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    expect(() => ledger.appendSampled(0, { ...generation([10, 11]), logprobs: [-0.1] })).toThrow(
      "2 sampled ids have 1 logprobs",
    );
  });

  test("appendSampled() refuses a logprob that is not finite", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    const broken = { ...generation([10]), logprobs: [Number.NaN] };
    expect(() => ledger.appendSampled(0, broken)).toThrow("within -10000 and 0.000001, not NaN");
    expect([...ledger.ids]).toEqual([1]);
  });

  test.each([0.1, 2e-6, -10_001, -Infinity, "-1", null])(
    "appendSampled() refuses %s as a logprob",
    (logprob) => {
      const ledger = new TokenLedger();
      ledger.appendPrompt([1]);
      const broken = { ...generation([10]), logprobs: [logprob as number] };
      expect(() => ledger.appendSampled(0, broken)).toThrow("the logprob of a sampled id");
    },
  );

  test.each([0, 1e-6, 1e-7, -10_000])("appendSampled() takes %s as a logprob", (logprob) => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    ledger.appendSampled(0, { ...generation([10]), logprobs: [logprob] });
    expect([...ledger.ids]).toEqual([1, 10]);
  });

  test("appendSampled() refuses pieces that do not add up", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    expect(() => ledger.appendSampled(0, generation([10, 11], [[1, "7"]]))).toThrow(
      "pieces of 1 ids make up 2 sampled ids",
    );
  });

  test("refuses invalid ids", () => {
    const ledger = new TokenLedger();
    for (const id of [-1, 1.5, 2 ** 31, NaN, "7" as unknown as number]) {
      expect(() => ledger.appendPrompt([1, id])).toThrow("whole number from 0 to 2147483647");
    }
    ledger.appendPrompt([0, 2 ** 31 - 1]);
    expect(() => ledger.appendEnvironment([2 ** 31])).toThrow("each environment id is a whole");
    expect(() => ledger.appendSampled(0, generation([2 ** 31]))).toThrow("each sampled id is a");
    expect([...ledger.ids]).toEqual([0, 2 ** 31 - 1]);
  });

  test.each<[string, (ledger: TokenLedger) => void, string]>([
    ["a second prompt", (ledger) => ledger.appendPrompt([1]), "a segment has one prompt"],
    [
      "a list of ids with a hole",
      (ledger) => ledger.appendEnvironment(holed([1, 2, 3])),
      "each environment id is a whole number",
    ],
    [
      "logprobs with a hole",
      (ledger) =>
        ledger.appendSampled(0, { ...generation([1, 2, 3]), logprobs: holed([-1, -1, -1]) }),
      "the logprob of a sampled id is within -10000 and 0.000001, not undefined",
    ],
    [
      "pieces of no whole number",
      (ledger) => ledger.appendSampled(0, generation([1, 2], [[2.5, "7"]])),
      "a piece has a whole number of ids",
    ],
    [
      "a close of a turn that was not sampled",
      (ledger) => ledger.appendSynthesisedClose([1]),
      "only a sampled turn can be closed",
    ],
    [
      "to drop what was not sampled",
      (ledger) => ledger.dropStopId(1),
      "only the last sampled id can be dropped",
    ],
  ])("refuses %s with an InvariantError, and stays unchanged", (_, call, message) => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([9, 1]);
    const digest = ledger.digest();
    let thrown: unknown;
    try {
      call(ledger);
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(InvariantError);
    expect((thrown as Error).message).toContain(message);
    expect(isOwnBug(thrown)).toBe(false);
    expect([[...ledger.ids], ledger.spans.length, ledger.digest()]).toEqual([[9, 1], 1, digest]);
  });

  test("refuses environment ids before the prompt, and an empty prompt", () => {
    const ledger = new TokenLedger();
    expect(() => ledger.appendEnvironment([1])).toThrow("begins with its prompt");
    expect(() => ledger.appendPrompt([])).toThrow("at least one id");
  });

  test("refuses a turn that does not come after the last", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    ledger.appendSampled(4, generation([10]));
    ledger.appendEnvironment([20]);
    expect(() => ledger.appendSampled(4, generation([11]))).toThrow("turn 4 comes after turn 4");
    expect(() => ledger.appendSampled(3, generation([11]))).toThrow("turn 3 comes after turn 4");
  });

  test("notices a change of the live view of its ids", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1, 2]);
    ledger.appendSampled(0, generation([10, 11]));
    expect(ledger.isUnchanged()).toBe(true);
    ledger.ids[1] = 3;
    expect(ledger.isUnchanged()).toBe(false);
    ledger.ids[1] = 2;
    expect(ledger.isUnchanged()).toBe(true);
    structuredClone(ledger.ids, { transfer: [ledger.ids.buffer as ArrayBuffer] });
    expect(ledger.isUnchanged()).toBe(false);
    ledger.appendEnvironment([20]);
    expect(ledger.isUnchanged()).toBe(false);
  });

  test("a view keeps its ids while later ones are recorded", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1, 2]);
    const sent = ledger.ids;
    ledger.appendSampled(0, generation([10, 11]));
    ledger.dropStopId(11);
    ledger.appendEnvironment([20]);
    expect([...ledger.ids]).toEqual([1, 2, 10, 20]);
    expect(ledger.isUnchanged()).toBe(true);
    expect([...sent]).toEqual([1, 2]);
  });

  test.each([-1, 7])(
    "keeps the hash of the last sampled id if a reader replaces it with %d",
    (id) => {
      const ledger = new TokenLedger();
      ledger.appendPrompt([1, 2]);
      ledger.appendSampled(0, generation([10, 11]));
      ledger.ids[3] = id;
      expect(ledger.digest()).toBe(hashIds([1, 2, 10, 11]));
      expect(ledger.isUnchanged()).toBe(false);
      ledger.dropStopId(11);
      ledger.appendEnvironment([20]);
      expect(ledger.digest()).toBe(hashIds([1, 2, 10, 20]));
    },
  );

  test("refuses a second prompt, and anything sampled before the first", () => {
    const ledger = new TokenLedger();
    expect(() => ledger.appendSampled(0, generation([10]))).toThrow("begins with its prompt");
    ledger.appendPrompt([1]);
    expect(() => ledger.appendPrompt([2])).toThrow("one prompt");
  });

  test("dropStopId() removes exactly the last sampled id and records it", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    ledger.appendSampled(
      0,
      generation(
        [10, 11, 12],
        [
          [1, "7"],
          [2, "8"],
        ],
      ),
    );
    ledger.dropStopId(12);
    expect([...ledger.ids]).toEqual([1, 10, 11]);
    expect(ledger.droppedStops).toEqual([
      { turnIndex: 0, id: 12, logprob: -0.1 * 3, policyVersion: "8" },
    ]);
    expect(ledger.digest()).toBe(hashIds([1, 10, 11]));
    expect(() => ledger.dropStopId(12)).toThrow("only the last sampled id can be dropped");
    expect(() => ledger.dropStopId(11)).toThrow("turn 0 has one stop id, and it was dropped");
  });

  test("the digest is the hash of all ids for any way of appending", () => {
    const ids = fc.array(fc.nat({ max: 2 ** 31 - 1 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(
        ids,
        fc.array(fc.tuple(fc.constantFrom("environment", "sampled", "dropped"), ids), {
          maxLength: 10,
        }),
        fc.boolean(),
        (prompt, parts, isAskedOften) => {
          const ledger = new TokenLedger();
          ledger.appendPrompt(prompt);
          const all = [...prompt];
          const mask = prompt.map(() => 0);
          parts.forEach(([kind, part], index) => {
            if (kind === "environment") ledger.appendEnvironment(part);
            else ledger.appendSampled(index, generation(part));
            if (isAskedOften) expect(ledger.digest()).toBe(hashIds([...all, ...part]));
            if (kind === "dropped") ledger.dropStopId(part.at(-1)!);
            const kept = kind === "dropped" ? part.slice(0, -1) : part;
            all.push(...kept);
            mask.push(...kept.map(() => (kind === "environment" ? 0 : 1)));
            if (isAskedOften) expect(ledger.digest()).toBe(hashIds(all));
          });
          expect(ledger.digest()).toBe(hashIds(all));
          expect(ledger.isUnchanged()).toBe(true);
          expect([...ledger.ids]).toEqual(all);
          expect(lossMask(ledger.spans)).toEqual(mask);
        },
      ),
    );
  });
});

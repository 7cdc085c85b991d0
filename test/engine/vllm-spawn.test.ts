import { existsSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { createLlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import {
  TEST_SERVER_PROGRAM,
  spawnTestServer,
} from "../../src/testing/protocol-servers/spawn-test-server.ts";
import { toRequest } from "./request.ts";

const isBuilt = existsSync(TEST_SERVER_PROGRAM);
if (!isBuilt) console.warn("Skipping tests of server processes: the project is not built");

describe.skipIf(!isBuilt)("a test server in a process of its own", () => {
  test("speaks vLLM's protocol, is killed in the middle of a turn, and the turn is sampled again", async () => {
    await using server = await spawnTestServer({
      protocol: "vllm",
      policy: "scripted",
      policyOptions: { s: [{ outputIds: [10, 11, 2] }] },
      options: { tokenLatencyMs: 150, contextLength: 1_000, isDevelopment: true },
    });
    const engine = createVllmEngine({
      url: server.url,
      retry: { baseDelayMs: 10, maxDelayMs: 50, maxAttempts: 500 },
    });
    const call = engine.generate(toRequest());
    await untilGenerateCount(server.url, 1);
    await server.kill();
    await server.restart();
    const generation = await call;
    expect(generation.outputIds).toEqual([10, 11, 2]);
    expect(generation.discarded.map(({ requestId }) => requestId)).toEqual(["a"]);
    expect(generation.pieces[0]?.policyVersion).toBe("default");
    await engine.close();
  });

  test("speaks llama.cpp's", async () => {
    await using server = await spawnTestServer({
      protocol: "llama-cpp",
      policy: "echo",
      options: { partialIds: [3] },
    });
    const engine = createLlamaCppEngine({ url: server.url });
    expect(await engine.generate(toRequest())).toMatchObject({
      outputIds: [1, 2],
      logprobs: [-0.0625, -0.125],
    });
    await engine.close();
  });

  test("says which protocols there are", async () => {
    const protocol = "tgi" as "vllm";
    await expect(spawnTestServer({ protocol })).rejects.toThrow(
      /Cannot speak tgi: expected --protocol to be one of sglang, vllm, llama-cpp/,
    );
  });
});

/** Polls the process's counts until it has counted a number of requests. */
async function untilGenerateCount(url: string, count: number): Promise<void> {
  for (;;) {
    const stats = (await (await fetch(`${url}/test/stats`)).json()) as { generateCount: number };
    if (stats.generateCount >= count) return;
  }
}

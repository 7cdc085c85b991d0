import { spawn } from "node:child_process";
import { get } from "node:http";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createToolCallingAgent } from "../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../src/agent/tool-use-policy.ts";
import type { Environment } from "../src/environment/environment.ts";
import { defaultLimits } from "../src/episode/limits.ts";
import { Redactor } from "../src/secrets/redactor.ts";
import { findToolCallParser } from "../packages/tool-parsers/src/registry.ts";
import { serveRollouts } from "../src/service/server/serve-rollouts.ts";
import { RolloutService } from "../src/service/rollout-service.ts";
import { createCharacterRenderer } from "../src/testing/character-renderer.ts";
import { createScriptedUser } from "../src/user/scripted-user.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { instantEngine } from "./instant-engine.ts";

const groupCount = 1250;
const groupSize = 8;
const tokenCount = 4000;

/**
 * Measures ten thousand samples of four thousand tokens through the service. An engine without latency plays them,
 * and another process on the same machine reads them over HTTP. Then measures a reader that stalls.
 */
export async function benchService(): Promise<BenchFigure[]> {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-bench-service-"));
  try {
    await using service = await openService(dir);
    const place = { host: "127.0.0.1", port: 0, version: "0", redactor: new Redactor() };
    await using served = await serveRollouts(service, place);
    const before = process.memoryUsage.rss();
    let peak = before;
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 100);
    const cpuBefore = process.cpuUsage();
    const startedAt = performance.now();
    const { status } = await service.submit(requestOf("all"));
    const { firstMs, sampleCount } = await readGroups(served.url, status.batch);
    const seconds = (performance.now() - startedAt) / 1000;
    const cpu = process.cpuUsage(cpuBefore);
    clearInterval(watch);
    if (sampleCount !== groupCount * groupSize) throw new Error(`${sampleCount} samples were read`);
    const rereadAt = performance.now();
    await readGroups(served.url, status.batch);
    const rereadSeconds = (performance.now() - rereadAt) / 1000;
    const stalled = await stallReader(served.url);
    const figure = (name: string, value: number, unit: string): BenchFigure => ({
      bench: "service",
      figure: name,
      value,
      unit,
      at: `${sampleCount} x ${tokenCount} tokens`,
    });
    return [
      figure("played and read, samples per second", sampleCount / seconds, "1/s"),
      figure(
        "played, samples per CPU second",
        (sampleCount * 1e6) / (cpu.user + cpu.system),
        "1/s",
      ),
      figure("read again, samples per second", sampleCount / rereadSeconds, "1/s"),
      figure("first group read after", firstMs, "ms"),
      figure("memory beyond the start, at most", (peak - before) / 2 ** 20, "MiB"),
      figure("memory that a stalled reader costs in 10 s", stalled / 2 ** 20, "MiB"),
    ];
  } finally {
    await rm(dir, { recursive: true });
  }
}

function requestOf(key: string) {
  const tasks = Array.from({ length: groupCount }, (_, index) => index);
  return { key, split: "train", tasks, samples: groupSize, seed: 0, sampling: {} };
}

async function openService(dir: string): Promise<RolloutService> {
  const renderer = createCharacterRenderer();
  const stop = renderer.stopTokenIds[0]!;
  const letters = await renderer.codec.encode("abcdefgh ".repeat(500));
  const turn = [...letters.slice(0, tokenCount - 1), stop];
  return await RolloutService.open({
    dir,
    setup: {
      environment: farewell,
      user: createScriptedUser({ lines: ["Hello.", { text: "Bye.", leaves: true }] }),
      engine: instantEngine(() => turn, { latencyMs: 0 }),
      renderer,
      agent: createToolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: toolUsePolicies.many,
      }),
      sampling: {},
      limits: { ...defaultLimits, maxTokensPerTurn: tokenCount },
      now: Date.now,
    },
    manifest: {
      format: 1,
      turnwright: "0",
      configuration: {},
      identity: { tokenizer: "characters" },
      found: { vocabularySize: renderer.codec.vocabularySize },
    },
    concurrency: 64,
    attempts: 1,
    maxQueued: 100_000,
  });
}

/** The policy says one line, and the user leaves. */
const farewell: Environment = {
  name: "farewell",
  source: "bench",
  splits: { train: groupCount },
  tools: [],
  policyText: "Say goodbye.",
  repeatable: true,
  task: (split, index) => ({
    id: `farewell/${split}/${index}`,
    environment: "farewell",
    split,
    index,
    instruction: "",
    data: {},
  }),
  open: async () => ({
    begin: async () => "Hello.",
    step: async () => ({ observation: "Bye.", from: "user", source: "user", done: "user-left" }),
    score: async () => ({ reward: 1, details: {} }),
    userUsage: () => ({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 }),
    [Symbol.asyncDispose]: async () => {},
  }),
};

/** Reads a batch to its end in a new process. */
async function readGroups(
  url: string,
  batch: string,
): Promise<{ readonly firstMs: number; readonly sampleCount: number }> {
  const program = `
    const startedAt = performance.now();
    let rest = "", firstMs, sampleCount = 0;
    const reply = await fetch(process.argv[1]);
    for await (const text of reply.body.pipeThrough(new TextDecoderStream())) {
      const lines = (rest + text).split("\\n");
      rest = lines.pop();
      for (const line of lines) {
        const { type, group } = JSON.parse(line);
        if (type !== "group") continue;
        firstMs ??= performance.now() - startedAt;
        for (const { rows } of group.attempts) if (rows[0].logprobs.length > ${tokenCount}) sampleCount += 1;
      }
    }
    console.log(JSON.stringify({ firstMs, sampleCount }));`;
  const args = ["--input-type=module", "-e", program, `${url}/v1/groups?batch=${batch}`];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  child.stdout.on("data", (text: Buffer) => (output += text.toString()));
  await new Promise((resolve) => child.on("close", resolve));
  return JSON.parse(output) as { firstMs: number; sampleCount: number };
}

/** Requests all groups, reads one piece, and measures the growth of memory. */
async function stallReader(url: string): Promise<number> {
  globalThis.gc?.();
  const before = process.memoryUsage.rss();
  const request = get(`${url}/v1/groups`);
  await new Promise<void>((resolve) => {
    request.on("response", (response) => {
      response.once("data", () => {
        response.pause();
        resolve();
      });
    });
  });
  await sleep(10_000);
  const after = process.memoryUsage.rss();
  request.destroy();
  return Math.max(0, after - before);
}

import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createToolCallingAgent } from "../../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../src/agent/tool-use-policy.ts";
import type { ColumnPart } from "../../src/columns/column-part.ts";
import { rowBytesOf, type ColumnSpecs } from "../../src/columns/column-specs.ts";
import { hashInTurns } from "../../src/columns/hash-in-turns.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { joinChunks } from "../../src/engine/http/reply-columns.ts";
import { defineEnvironment } from "../../src/environment/define-environment.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import { RunFolder } from "../../src/run/folder/run-folder.ts";
import { planRun } from "../../src/run/schedule/plan-run.ts";
import { characterIds, createCharacterRenderer } from "../../src/testing/character-renderer.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { createScriptedUser } from "../../src/user/scripted-user.ts";
import { benchManifest, playInto } from "../play-into-folder.ts";
import { watchLoop } from "../watch-loop.ts";
import type { LiveColumnFigures } from "./bench-live-columns.ts";

// A process of its own: node live-columns-main.js LIVE TURNS TURN_TOKENS with|without
const [live = "", turns = "", turnTokens = "", kind = ""] = process.argv.slice(2);
const liveCount = Number(live);
const turnCount = Number(turns);
const newTokens = Number(turnTokens);

const columns: ColumnSpecs = { routedExperts: { layerCount: 48, perToken: 8, expertCount: 128 } };
const rowBytes = rowBytesOf("routedExperts", columns)!;

const call = characterIds('<tool_call>\n{"name": "read", "arguments": {}}\n</tool_call>');
const observation = "x".repeat(newTokens - call.length);

const environment = defineEnvironment({
  name: "pages",
  tasks: Array.from({ length: liveCount }, (_, index) => ({ instruction: `Read ${index}.` })),
  initialState: () => ({}),
  policy: "Read.",
  tools: { read: { description: "Reads a page.", execute: () => observation } },
  score: () => 1,
});

/** More rows than any reply has: parts are taken from different places, so that their hashes differ. */
const inventedRows = 8 * newTokens;
const invented = randomBytes(inventedRows * rowBytes);
for (let at = 0; at < invented.length; at += 8) {
  const first = invented[at]!;
  for (let rank = 0; rank < 8; rank++) invented[at + rank] = (first + rank) % 128;
}

const engine: Engine = {
  kind: "instant",
  async generate({ columns: asked, promptIds, requestId }) {
    await sleep(200 + Math.random() * 200);
    /** Copies and hashes the rows in turns, as the engines with a server do. */
    const createPart = async (knownRows: number): Promise<ColumnPart> => {
      const rows = promptIds.length + call.length - 1 - knownRows;
      const start = Math.floor(Math.random() * (inventedRows - rows)) * rowBytes;
      const bytes = await joinChunks([invented.subarray(start, start + rows * rowBytes)]);
      const hash = await hashInTurns(bytes);
      return { from: knownRows, rows, policyVersion: "1", size: bytes.length, hash, bytes };
    };
    return {
      outputIds: call,
      logprobs: call.map(() => -0.5),
      finish: { type: "stop" },
      pieces: [{ requestId, tokenCount: call.length, policyVersion: "1", finish: "stop" }],
      ...(asked !== undefined && {
        columns: { routedExperts: [await createPart(asked.knownRows)] },
      }),
      discarded: [],
    };
  },
  describe: async () => ({ kind: "instant", logprobConvention: "tempered" }),
  close: async () => {},
};

const dir = await mkdtemp(path.join(tmpdir(), "turnwright-live-columns-"));
let peak = 0;
let worstMs = 0;
const waits: number[] = [];
const cpuBefore = process.cpuUsage();
try {
  await using folder = await RunFolder.open(dir, benchManifest, { retryFailed: false });
  const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), 50);
  const stop = watchLoop((ms) => {
    if (ms > 5) waits.push(ms);
    worstMs = Math.max(worstMs, ms);
  });
  await playInto(folder, {
    plan: planRun(environment, {
      split: "test",
      taskIndexes: Array.from({ length: liveCount }, (_, index) => index),
      sampleCount: 1,
      seed: 0,
    }),
    setup: {
      environment,
      user: createScriptedUser({ lines: ["Go on."] }),
      engine,
      renderer: createCharacterRenderer(),
      agent: createToolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: toolUsePolicies.many,
      }),
      sampling: {},
      limits: { ...defaultLimits, maxTurns: turnCount },
      now: Date.now,
      ...(kind === "with" && { columns }),
    },
    concurrency: liveCount,
  });
  clearInterval(watch);
  stop();
} finally {
  const columnBytes = await sizeOf(path.join(dir, "columns"));
  await rm(dir, { recursive: true });
  const cpu = process.cpuUsage(cpuBefore);
  process.send?.({
    peakMiB: peak / 2 ** 20,
    worstMs,
    pauseCount: waits.length,
    cpuMs: (cpu.user + cpu.system) / 1000 / (liveCount * turnCount),
    columnBytes,
    rowBytes,
  } satisfies LiveColumnFigures);
  process.disconnect?.();
}

async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder).catch(() => []);
  let size = 0;
  for (const name of names) size += (await stat(path.join(folder, name))).size;
  return size;
}

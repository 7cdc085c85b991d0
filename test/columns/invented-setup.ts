import { readFileSync, renameSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createToolCallingAgent } from "../../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../src/agent/tool-use-policy.ts";
import { systemClock } from "../../src/async/clock.ts";
import type { Engine } from "../../src/engine/engine.ts";
import { createSeededRandom } from "../../src/environment/seeded-random.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import type { RunManifest } from "../../src/run/folder/run-folder.ts";
import type { StartRunOptions } from "../../src/run/start-run-options.ts";
import { createCharacterRenderer } from "../../src/testing/character-renderer.ts";
import { withInventedColumns } from "../../src/testing/column-engine.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { restOfTurn } from "../simulation/simulated-policy.ts";
import { tallyEnvironment, tallyUser, type Surroundings } from "../simulation/tally-world.ts";

/** The columns of the killed runs. */
export const killedSpecs = {
  routedExperts: { layerCount: 3, perToken: 2, expertCount: 256 },
  keptTokens: { maxCount: 4 },
  topLogprobs: { count: 2 },
};

export const taskCount = 8;
export const sampleCount = 3;

export const killedManifest: RunManifest = {
  format: 1,
  turnwright: "0.1.0",
  configuration: { env: "tally" },
  identity: { tokenizer: "characters" },
  found: {},
};

/** Number of ids that the engine samples between two looks at its signals. */
const sampledTogether = 8;

/** The file with the version of the weights that all processes sample with. */
const versionFile = (dir: string): string => path.join(dir, "version");

/** Reads the version of the weights. */
export function readWeights(dir: string): number {
  return Number(readFileSync(versionFile(dir), "utf8"));
}

/** Changes the weights, in one step for all processes. */
export function writeWeights(dir: string, version: number): void {
  writeFileSync(`${versionFile(dir)}.next`, String(version));
  renameSync(`${versionFile(dir)}.next`, versionFile(dir));
}

/** An engine that samples slowly, and can be cut short. Its weights are those that the file has when a call begins. */
function slowEngine(dir: string): Engine {
  return {
    kind: "invented",
    async generate({ promptIds, sampling, requestId }, { signal, cutShort } = {}) {
      const policyVersion = String(readWeights(dir));
      const wanted = restOfTurn([...promptIds], sampling.seed);
      const isOver = (): boolean => count === wanted.length || cutShort?.aborted === true;
      let count = 0;
      while (!isOver()) {
        await systemClock.sleep(3);
        signal?.throwIfAborted();
        count = Math.min(count + sampledTogether, wanted.length);
      }
      const outputIds = wanted.slice(0, count);
      const isWhole = count === wanted.length;
      return {
        outputIds,
        logprobs: outputIds.map((id) => -(id % 7) / 8),
        finish: { type: isWhole ? "stop" : "length" },
        pieces: [
          { requestId, tokenCount: count, policyVersion, finish: isWhole ? "stop" : "abort" },
        ],
        discarded: [],
      };
    },
    describe: async () => ({
      kind: "invented",
      logprobConvention: "tempered",
      policyVersion: String(readWeights(dir)),
    }),
    close: async () => {},
  };
}

/** Returns the setup of a process. `dir` has the file with the version of the weights. */
export function killedSetup(dir: string): StartRunOptions["setup"] {
  const around: Surroundings = {
    random: createSeededRandom("tally"),
    clock: systemClock,
    troubles: 0,
    draw: () => 0,
  };
  return {
    environment: tallyEnvironment(taskCount, around),
    user: tallyUser(around),
    engine: withInventedColumns(slowEngine(dir)),
    renderer: createCharacterRenderer(),
    agent: createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      toolUsePolicy: toolUsePolicies.many,
    }),
    sampling: { seed: 7 },
    limits: { ...defaultLimits, maxTurns: 6 },
    columns: killedSpecs,
    now: () => Date.now(),
  };
}

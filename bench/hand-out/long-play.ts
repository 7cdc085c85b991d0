import { createToolCallingAgent } from "../../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../src/agent/tool-use-policy.ts";
import { defineEnvironment } from "../../src/environment/define-environment.ts";
import type { Environment } from "../../src/environment/environment.ts";
import type { EpisodeSetup } from "../../src/episode/episode-setup.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { createRenderer } from "../../src/renderer/create-renderer.ts";
import { planRun, type RunPlan } from "../../src/run/schedule/plan-run.ts";
import { createScriptedUser } from "../../src/user/scripted-user.ts";
import { qwen3Folder } from "../bench-model.ts";
import { instantEngine } from "../instant-engine.ts";

/** The shape of a coding agent's attempts: a prompt of 5,000 tokens that grows to 142,000. */
export const longShape = { turns: 43, sampledTokens: 444, observationLines: 170, promptLines: 290 };

/** Attempts in the shape of a coding agent's. */
export interface LongPlay {
  readonly plan: RunPlan;
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
}

/** Prepares attempts in the shape of a coding agent's, with an engine that answers at once. */
export async function prepareLong(attemptCount: number): Promise<LongPlay> {
  const environment = codeReader(attemptCount);
  const renderer = await createRenderer({ modelDir: qwen3Folder() });
  const call = '<tool_call>\n{"name": "read_file", "arguments": {}}\n</tool_call><|im_end|>';
  const callIds = await renderer.codec.encode(call);
  const thoughtIds = await renderer.codec.encode(linesOf(80, 1));
  const turn = [...thoughtIds.slice(0, longShape.sampledTokens - callIds.length), ...callIds];
  return {
    plan: planRun(environment, {
      split: "test",
      taskIndexes: Array.from({ length: attemptCount }, (_, index) => index),
      sampleCount: 1,
      seed: 0,
    }),
    setup: {
      environment,
      user: createScriptedUser({ lines: ["Repair it."] }),
      engine: instantEngine(() => turn, { latencyMs: 0 }),
      renderer,
      agent: createToolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: toolUsePolicies.many,
      }),
      sampling: {},
      limits: { ...defaultLimits, maxTurns: longShape.turns, maxEpisodeTokens: 1e9 },
      now: () => Date.now(),
    },
  };
}

/** An environment with one tool, which returns a part of a source file. */
function codeReader(taskCount: number): Environment {
  return defineEnvironment({
    name: "code-reader",
    tasks: Array.from({ length: taskCount }, (_, index) => ({
      instruction: `Repair function ${index}.`,
    })),
    initialState: () => ({ reads: 0 }),
    policy: linesOf(longShape.promptLines, 2),
    tools: {
      read_file: {
        description: "Read the next part of the file.",
        execute: (_, state: { reads: number }) =>
          linesOf(longShape.observationLines, (state.reads += 1)),
      },
    },
    score: () => 1,
  });
}

/** Lines of source code, of about 17 tokens each. */
function linesOf(count: number, start: number): string {
  return Array.from({ length: count }, (_, index) => {
    const number = (start * 7919 + index * 31) % 997;
    return `  const value${number} = await compute(state.items[${index}], { limit: ${number} });`;
  }).join("\n");
}

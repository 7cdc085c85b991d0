import { createToolCallingAgent } from "../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../agent/tool-use-policy.ts";
import type { Engine } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import { lamp, lampTask, preparedEngine, says } from "../episode/lamp-episode.fixture.ts";
import { defaultLimits } from "../episode/limits.ts";
import { withDeadline } from "../async/deadline.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import { type RunPlan, planRun } from "./schedule/plan-run.ts";
import type { RunFolder } from "./folder/run-folder.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { type RunOptions, type RunResult, runRollouts } from "./run-rollouts.ts";

/** An environment of lamps; `drawn` is called for each task that is drawn. */
export function lamps(taskCount: number, drawn: (index: number) => void = () => {}): Environment {
  return {
    ...lamp(),
    splits: { test: taskCount },
    task(split, index) {
      drawn(index);
      return { ...lampTask, id: `lamp/${split}/${index}`, split, index };
    },
  };
}

/** A setup for lamps: a customer who wants one switched on, and a paused clock. */
export function lampSetup({
  environment,
  engine,
}: {
  readonly environment: Environment;
  readonly engine: Engine;
}): StartRunOptions["setup"] {
  return {
    environment,
    user: createScriptedUser({ lines: ["Lamp on, please.", { text: "Bye.", leaves: true }] }),
    engine,
    renderer: createCharacterRenderer(),
    agent: createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      toolUsePolicy: toolUsePolicies.many,
    }),
    sampling: {},
    limits: defaultLimits,
    now: () => 1000,
  };
}

/** Two attempts at each lamp. */
export function lampPlan(environment: Environment): RunPlan {
  const taskIndexes = Array.from({ length: environment.splits["test"]! }, (_, index) => index);
  return planRun(environment, { split: "test", taskIndexes, sampleCount: 2, seed: 0 });
}

/**
 * Plays two attempts at each lamp. All say goodbye at once, and the clock is paused.
 * @param held - A rollout that answers only after another one has ended.
 */
export async function playLamps(
  folder: RunFolder,
  environment: Environment,
  { held, ...options }: Partial<RunOptions> & { readonly held?: string } = {},
): Promise<RunResult> {
  const engine = preparedEngine([]);
  const other = withResolvers();
  const playing: Engine = {
    ...engine,
    generate: async (...[request, options]: Parameters<Engine["generate"]>) => {
      if (request.sessionId === held) {
        await withDeadline(async () => await other.promise, {
          ms: Infinity,
          signal: options?.signal ?? new AbortController().signal,
          onLate: () => {},
        });
      }
      // Each attempt asks an engine of its own, for its first answer.
      return await preparedEngine([says("Goodbye!")]).generate(request, options);
    },
  };
  const setup = lampSetup({ environment, engine: playing });
  return await runRollouts({
    plan: lampPlan(environment),
    setup,
    folder,
    concurrency: 2,
    attempts: 1,
    maxFailuresInRow: 10,
    signal: new AbortController().signal,
    ...options,
    onEpisode: (episode) => {
      if (episode.rolloutId !== held) other.resolve();
      options.onEpisode?.(episode);
    },
  });
}

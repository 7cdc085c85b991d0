import { UsageError } from "../errors.ts";
import { pythonRandomSample } from "../../packages/python-values/src/random-sample.ts";
import type { Agent } from "./agent.ts";
import { createToolCallingAgent, type ToolCallingOptions } from "./tool-calling-agent.ts";

/** The unit for which a few-shot agent draws new examples. */
export type FewShotDraw = "episode" | "task" | "run";

/** Settings of a few-shot agent. */
export interface FewShotOptions extends ToolCallingOptions, FewShotExamples {}

/** The examples that an agent shows. */
export interface FewShotExamples {
  /** The example conversations as text. */
  readonly examples: readonly string[];
  /** Number of examples to show. Default 5, as in τ-bench. */
  readonly exampleCount?: number;
  /**
   * `episode` (default) draws for each attempt separately, as τ-bench does. `task` shows all
   * attempts at a task the same examples, so that a group shares one prompt. `run` shows all
   * episodes the same examples, so that they share the engine's prefix cache.
   */
  readonly draw?: FewShotDraw;
  /** The run's seed for `run`, and for `task`, which adds the task's index. Default 0. */
  readonly seed?: number;
}

/**
 * Creates a tool-calling agent with example conversations after the policy text.
 *
 * τ-bench draws the examples from one generator for all episodes, so that they depend on the
 * episodes before. Here each draw is Python's `random.Random(seed).sample(examples, count)` with
 * the seed of the episode or the run.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/agents/few_shot_agent.py.
 *
 * @throws UsageError if there are fewer examples than `exampleCount`.
 */
export function createFewShotAgent(options: FewShotOptions): Agent {
  return withFewShots(createToolCallingAgent(options), options);
}

/**
 * Adds example conversations after the policy text of a tool-calling agent.
 *
 * @throws UsageError if there are fewer examples than `exampleCount`.
 */
export function withFewShots(agent: Agent, options: FewShotExamples): Agent {
  const { examples, exampleCount = 5, draw = "episode", seed: runSeed = 0 } = options;
  if (exampleCount > examples.length) {
    throw new UsageError(
      `Cannot show ${exampleCount} examples: only ${examples.length} are available`,
    );
  }
  return {
    ...agent,
    strategy: "few-shot",
    open(start) {
      const seeds = { episode: start.seed, task: runSeed + start.taskIndex, run: runSeed };
      const drawn = pythonRandomSample(examples, exampleCount, seeds[draw]);
      const shown = drawn.map((example, index) => `Example ${index + 1}:\n${example}`);
      return agent.open({
        ...start,
        policyText: `${start.policyText}\n\n${shown.join("\n\n")}`,
      });
    },
  };
}

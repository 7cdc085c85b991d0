import { UsageError } from "../errors.ts";
import { pythonRandomSample } from "../python/random-sample.ts";
import type { Agent } from "./agent.ts";
import { toolCallingAgent, type ToolCallingOptions } from "./tool-calling-agent.ts";

/** What the examples of a few-shot agent are drawn anew for. */
export type FewShotDraw = "episode" | "task" | "run";

/** How a few-shot agent draws its examples and reads turns. */
export interface FewShotOptions extends ToolCallingOptions {
  /** The conversations to draw from, written out as text. */
  readonly examples: readonly string[];
  /** How many are shown. Default 5, as in τ-bench. */
  readonly exampleCount?: number;
  /**
   * `episode` (default) draws for each attempt by itself, as τ-bench does; `task` shows all attempts
   * at a task the same examples, so that a group shares one prompt; `run` shows the same ones in all
   * episodes, so that they share the engine's prefix cache.
   */
  readonly draw?: FewShotDraw;
  /** The run's seed, for `task` (to which the task's index is added) and `run`. Default 0. */
  readonly seed?: number;
}

/**
 * The tool-calling agent with example conversations after the policy text.
 *
 * τ-bench draws the examples from a generator that all episodes share, so that they depend on what
 * ran before. Here each draw is `random.Random(seed).sample(examples, count)` of Python, seeded by
 * the episode, or by the run.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/agents/few_shot_agent.py.
 *
 * @throws UsageError where there are fewer examples than are to be shown.
 */
export function fewShotAgent(options: FewShotOptions): Agent {
  const { examples, exampleCount = 5, draw = "episode", seed: runSeed = 0 } = options;
  if (exampleCount > examples.length) {
    throw new UsageError(
      `Cannot show ${exampleCount} examples: there are ${examples.length} to draw from`,
    );
  }
  const agent = toolCallingAgent(options);
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

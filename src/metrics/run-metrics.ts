import { Counter, Gauge, Histogram, Registry, collectDefaultMetrics } from "prom-client";
import type { Episode } from "../episode/episode.ts";
import { turnTotalsOf } from "../run/packed/packed-episode.ts";
import type { EngineGate } from "../run/schedule/admission.ts";
import type { RunProgress } from "../run/run-progress.ts";

/** The current values from which a scrape computes its metrics. */
export interface MetricsSource {
  /** The run's progress. Absent before the run has started. */
  readonly progress: () => RunProgress | undefined;
  /** The state of the admission gate. Absent if only the concurrency limits the run. */
  readonly admission?: () => EngineGate["state"] | undefined;
}

/** A run's metrics in Prometheus' text format. */
export interface RunMetrics {
  readonly contentType: string;
  /**
   * Adds a finished episode to the histograms: the waiting times of its turns and its reward. Pass
   * it as `onEpisode`.
   */
  observe(episode: Pick<Episode, "turns" | "shared" | "reward" | "durationMs">): void;
  /** Returns all metrics with their current values. */
  text(): Promise<string>;
}

type Labels = Readonly<Record<string, string>>;
type Value = readonly [labels: Labels, value: number];

/** One metric, and the function that computes it from the run's state. */
interface Definition {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
  readonly read: (progress: RunProgress) => readonly Value[];
}

/** Returns one value, or none if it is unknown. Unknown is not 0. */
function one(value: number | undefined): readonly Value[] {
  return value === undefined ? [] : [[{}, value]];
}

/**
 * Sums over finished episodes, including those of earlier starts, unless the help text says
 * otherwise.
 */
const counters: readonly Definition[] = [
  {
    name: "turnwright_episodes_total",
    help: "Finished episodes by outcome",
    labels: ["outcome"],
    read: ({ outcomes }) =>
      Object.entries(outcomes).map(([outcome, count]) => [{ outcome }, count ?? 0]),
  },
  {
    name: "turnwright_failures_total",
    help: "Failed episodes by the party that failed and the code",
    labels: ["party", "code"],
    read: ({ failures }) =>
      Object.entries(failures).map(([code, count]) => [{ party: partyOf(code), code }, count ?? 0]),
  },
  {
    name: "turnwright_retried_attempts_total",
    help: "Failed attempts that were played again, since this start",
    read: ({ retried }) => one(retried),
  },
  {
    name: "turnwright_turns_total",
    help: "Turns of the policy",
    read: ({ turnCount }) => one(turnCount),
  },
  {
    name: "turnwright_tool_calls_total",
    help: "Tool calls",
    read: ({ toolCallCount }) => one(toolCallCount),
  },
  {
    name: "turnwright_format_errors_total",
    help: "Malformed tool calls",
    read: ({ formatErrorCount }) => one(formatErrorCount),
  },
  {
    name: "turnwright_sampled_tokens_total",
    help: "Tokens that the policy sampled",
    read: ({ sampledTokenCount }) => one(sampledTokenCount),
  },
  {
    name: "turnwright_tokens_total",
    help: "Tokens of all training rows",
    read: ({ tokenCount }) => one(tokenCount),
  },
  {
    name: "turnwright_scored_episodes_total",
    help: "Episodes that have a reward",
    read: ({ scored }) => one(scored),
  },
  {
    name: "turnwright_groups_total",
    help: "Groups that ended since this start: handed out, or left out",
    labels: ["result"],
    read: ({ groups }) => [
      [{ result: "finished" }, groups.finished],
      [{ result: "left_out" }, groups.leftOut],
    ],
  },
  {
    name: "turnwright_wait_seconds_total",
    help: "What ended turns have waited for, summed over all episodes, since this start",
    labels: ["on"],
    read: ({ spentMs }) =>
      Object.entries(spentMs).map(([on, spent]) => [
        { on: on === "environment" ? "tool" : on },
        spent / 1_000,
      ]),
  },
];

const gauges: readonly Definition[] = [
  {
    name: "turnwright_episodes_planned",
    help: "Episodes that the run has in all; absent for runs without end",
    read: ({ planned }) => one(planned),
  },
  {
    name: "turnwright_episodes_running",
    help: "Episodes that are played now",
    read: ({ running }) => one(running),
  },
  {
    name: "turnwright_reward_mean",
    help: "Mean reward of the scored episodes",
    read: ({ rewardMean }) => one(rewardMean),
  },
  {
    name: "turnwright_sampled_tokens_per_second",
    help: "Sampled since this start, a second",
    read: ({ sampledTokensPerSecond }) => one(sampledTokensPerSecond),
  },
  {
    name: "turnwright_staleness_versions",
    help: "How many versions of the policy old the oldest token of a group was: mean and most",
    labels: ["of"],
    read: ({ staleness }) =>
      staleness === undefined
        ? []
        : [
            [{ of: "mean" }, staleness.mean],
            [{ of: "most" }, staleness.most],
          ],
  },
];

/**
 * Bucket bounds in seconds, from the duration of a tool in this process to that of a slow model.
 */
const waitBuckets = [0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180];

/** Creates the histograms over single turns and episodes of this start. */
function createHistograms(registers: Registry[]): RunMetrics["observe"] {
  const wait = new Histogram({
    name: "turnwright_turn_wait_seconds",
    registers,
    labelNames: ["on"],
    help: "What the turns of finished episodes have waited for",
    buckets: waitBuckets,
  });
  const reward = new Histogram({
    name: "turnwright_reward",
    registers,
    help: "Rewards of the scored episodes",
    buckets: [-1, 0, 0.1, 0.25, 0.5, 0.75, 0.9, 1],
  });
  const duration = new Histogram({
    name: "turnwright_episode_seconds",
    registers,
    help: "How long episodes took",
    buckets: [0.1, 0.5, 1, 5, 15, 60, 180, 600, 1800, 7200],
  });
  return (episode) => {
    const { shared, reward: earned, durationMs } = episode;
    const turns = turnTotalsOf(episode);
    // Shared turns belong to another episode, which counts their waits.
    for (const { engineMs, userMs = 0, environmentMs } of turns.slice(shared?.turnCount ?? 0)) {
      wait.observe({ on: "engine" }, engineMs / 1000);
      if (userMs > 0) wait.observe({ on: "user" }, userMs / 1000);
      if (environmentMs > 0) wait.observe({ on: "tool" }, environmentMs / 1000);
    }
    if (earned !== undefined) reward.observe(earned);
    duration.observe(durationMs / 1000);
  };
}

/**
 * Returns the party that is to blame for an error code: `engine/unreachable` is the engine's fault.
 */
function partyOf(code: string): string {
  return code.split("/", 1)[0]!;
}

/**
 * Creates the metrics of a run. They include the process's memory, CPU use and event-loop delay,
 * under the names that Prometheus' clients use.
 */
export function createRunMetrics({ progress, admission }: MetricsSource): RunMetrics {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  for (const definition of counters) {
    const { name, help, labels = [] } = definition;
    const counter = new Counter({
      name,
      help,
      labelNames: [...labels],
      registers: [registry],
      collect() {
        // A counter has no `set()`, so it is reset and then increased to the sum.
        counter.reset();
        for (const [label, value] of valuesOf(definition, progress())) counter.inc(label, value);
      },
    });
  }
  for (const definition of gauges) {
    const { name, help, labels = [] } = definition;
    const gauge = new Gauge({
      name,
      help,
      labelNames: [...labels],
      registers: [registry],
      collect() {
        gauge.reset();
        const values = valuesOf(definition, progress());
        // An unset gauge without labels would be printed as 0.
        if (values.length === 0 && labels.length === 0) gauge.remove();
        for (const [label, value] of values) gauge.set(label, value);
      },
    });
  }
  const queue = new Gauge({
    name: "turnwright_admission",
    registers: [registry],
    labelNames: ["state"],
    help: "Episodes that were admitted, that wait to be, and that may be at once by the engine's load",
    collect() {
      for (const [state, count] of Object.entries(admission?.() ?? {})) queue.set({ state }, count);
    },
  });
  return {
    contentType: registry.contentType,
    observe: createHistograms([registry]),
    text: async () => await registry.metrics(),
  };
}

function valuesOf({ read }: Definition, progress: RunProgress | undefined): readonly Value[] {
  return progress === undefined ? [] : read(progress);
}

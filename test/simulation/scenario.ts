import type { Random } from "../../src/environment/seeded-random.ts";
import type { EpisodeGroup } from "../../src/run/schedule/group.ts";
import { createSpreadFilter } from "../../src/run/schedule/group.ts";
import type { QueueScenario } from "./simulated-queue.ts";
import type { GroupingOptions, StartRunOptions } from "../../src/run/start-run-options.ts";

/** The parameters of one simulation: drawn once, and the same for each of its processes. */
export interface Scenario {
  /** Tasks of the run in all. */
  readonly taskCount: number;
  readonly size: number;
  /** Attempts that are started at each task. */
  readonly begun: number;
  /** Plays of an attempt before its failure is final. */
  readonly attempts: number;
  readonly branchAt: readonly number[];
  /** `list`: all are known from the start; `growing`: each start names more; `feed`: none comes twice. */
  readonly source: "list" | "growing" | "feed";
  readonly keep: GroupingOptions["keep"];
  readonly staleness: StartRunOptions["staleness"];
  /** Groups that may wait to be taken. */
  readonly ahead: number;
  readonly redeliver: boolean;
  /** True if the trainer leaves in the middle of the run. */
  readonly leaves: boolean;
  /**
   * The agent's behaviour when it reads and shows turns: always the same, or sometimes different.
   */
  readonly agent: "steady" | "fickle";
  /** Forks that are played when the run is finished, each of an episode of the run or of a fork. */
  readonly forkCount: number;
  /**
   * True if only deaths and stops disturb the run, so its rows equal those of an undisturbed one.
   */
  readonly isUndisturbed: boolean;
  /** Seeds the run. */
  readonly seed: number;
  /** The player of its attempts; absent if the run's own process plays them. */
  readonly queue: QueueScenario | undefined;
}

const sources = ["list", "list", "growing", "feed"] as const;

/** Draws a scenario. One run in four is plain; the others have some of the difficult conditions. */
export function drawScenario(random: Random, more: Random): Scenario {
  const isPlain = random.chance(0.25);
  const isUndisturbed = !isPlain && random.chance(0.25);
  const some = (probability: number): boolean => !isPlain && random.chance(probability);
  const source = isPlain ? "list" : random.pick(sources);
  const size = isPlain ? 2 : random.between(1, 3);
  // Which attempts are the first to end follows from the time that each takes.
  const spare = some(0.3) && !isUndisturbed ? random.between(1, 2) : 0;
  const queue = more.chance(queueShare) ? drawQueue(more) : undefined;
  return {
    taskCount: isPlain ? 4 : random.between(2, 3),
    size,
    begun: queue === undefined ? size + spare : size,
    attempts: isPlain ? 2 : random.between(1, 2),
    branchAt: some(0.6) ? drawPlaces(random) : [],
    source,
    keep: some(0.25) ? random.pick(filters) : undefined,
    staleness: some(0.25) && !isUndisturbed ? drawStaleness(random) : undefined,
    ahead: some(0.3) ? random.between(1, 2) : Infinity,
    redeliver: isPlain || random.chance(0.75),
    leaves: some(0.3),
    agent: some(0.2) && !isUndisturbed ? "fickle" : "steady",
    forkCount: some(0.3) ? random.between(1, 3) : 0,
    isUndisturbed,
    seed: random.between(0, 1000),
    queue,
  };
}

/** The share of runs that workers play. */
const queueShare = Number(process.env["SIMULATION_QUEUE"] ?? 0.1);

function drawQueue(random: Random): QueueScenario {
  return {
    workerCount: random.between(1, 3),
    concurrency: random.between(1, 4),
    leaseMs: random.pick([5000, 15_000]),
    hasPlace: random.chance(0.7),
  };
}

function drawPlaces(random: Random): readonly number[] {
  return Array.from({ length: random.between(1, 2) }, () => random.between(0, 4));
}

function drawStaleness(random: Random): StartRunOptions["staleness"] {
  const beyond = random.pick(["drop", "mask", "mark", "wait"] as const);
  return { max: random.between(0, 2), beyond, groupsPerVersion: 1 };
}

/** The filter's decision about a group depends only on the group's rewards. */
const filters: readonly ((group: EpisodeGroup) => boolean | string)[] = [
  createSpreadFilter(),
  ({ episodes }) => episodes.some(({ reward }) => (reward ?? 0) > 0) || "no attempt was rewarded",
];

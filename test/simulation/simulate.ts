import { createSeededRandom, type Random } from "../../src/environment/seeded-random.ts";
import { inputsBefore } from "../../src/episode/inputs/input.ts";
import type { RunManifest } from "../../src/run/folder/run-folder.ts";
import { indexRecordings, readRecording } from "../../src/run/recording/read-recording.ts";
import { forkGroupId } from "../../src/run/attempt/shared-prefix.ts";
import { auditDisk } from "./audit-disk.ts";
import { checkReplays } from "./check-replays.ts";
import { checkBranches, checkRun, readFinished, type FinishedRun } from "./check-run.ts";
import { drawScenario, type Scenario } from "./scenario.ts";
import { SimulatedRun, type SimulatedRunOptions } from "./simulated-run.ts";
import { SimulatedWorld } from "./simulated-world.ts";
import { tallyEnvironment } from "./tally-world.ts";

/** The history of a simulated run. */
export interface Simulated {
  readonly seed: number;
  /** The drawn scenario. */
  readonly scenario: Scenario;
  /** Its processes, in order. */
  readonly lives: number;
  readonly turns: number;
  /** Rows that branch from another one. */
  readonly branches: number;
  /** The lines of the first run's `samples.jsonl`, sorted. */
  readonly samples: readonly string[];
  /** The violated invariants; empty in a sound run. */
  readonly wrong: readonly string[];
}

/**
 * Plays a complete run in simulated time, and forks of its attempts: engines that are slow, die,
 * lie and change their weights, users and agents that fail, a disk that fails and loses data,
 * processes that are killed anywhere, and clocks that jump. The seed determines everything.
 */
export async function simulate(seed: number): Promise<Simulated> {
  const { random, scenario } = drawFrom(seed);
  const world = new SimulatedWorld(random, seed);
  using _pace = simulatePace(createSeededRandom(`pace/${seed}`), () => world.clock.note());
  let lives = 0;
  const wrong: string[] = [];
  const runs: FinishedRun[] = [];
  const play = async (options: SimulatedRunOptions): Promise<void> => {
    const run = new SimulatedRun(world, scenario, options);
    lives += await run.play(random.between(0, 4));
    const found = readFinished(world, options);
    runs.push(found);
    wrong.push(...checkRun(world, scenario, { run, found }));
    wrong.push(...(await checkReplays(world, scenario, found)));
    wrong.push(...(await auditDisk(world.disk, options.dir)));
  };
  try {
    const first = firstRun(scenario);
    await play(first);
    for (let count = 0; count < scenario.forkCount; count++) {
      const fork = await drawFork(world, scenario, { runs, dir: `/fork-${count}` });
      if (fork !== undefined) await play(fork);
    }
    wrong.push(...checkBranches(world, scenario, runs), ...world.wrong);
    if (scenario.isUndisturbed)
      wrong.push(...(await compareCalm(seed, { world, scenario, first })));
  } catch (error) {
    wrong.push(error instanceof Error ? `${error.name}: ${error.stack}` : String(error));
    wrong.push(...world.wrong);
  }
  const rows = runs.flatMap(({ samples }) => samples);
  const branches = rows.filter(({ forkedFrom }) => forkedFrom !== undefined).length;
  const samples = world.disk.text("/run/samples.jsonl").split("\n").toSorted();
  return { seed, scenario, lives, turns: world.turnCount, branches, samples, wrong };
}

/** Returns the scenario of a seed. */
export function scenarioOf(seed: number): Scenario {
  return drawFrom(seed).scenario;
}

function drawFrom(seed: number): { readonly random: Random; readonly scenario: Scenario } {
  const random = createSeededRandom(`simulation/${seed}`);
  return { random, scenario: drawScenario(random, createSeededRandom(`parts/${seed}`)) };
}

function firstRun(scenario: Scenario): SimulatedRunOptions {
  const { begun, branchAt, seed, size, source, taskCount } = scenario;
  const wanted = { type: "tasks", source, count: taskCount } as const;
  const about = { dir: "/run", wanted, size, begun, branchAt, seed };
  return { ...about, manifest: manifestOf(scenario, about) };
}

/** The files of a run that `verify` reads. */
function manifestOf(
  { agent }: Scenario,
  { seed, size, wanted }: Omit<SimulatedRunOptions, "manifest">,
): RunManifest {
  const groupId = wanted.type === "fork" ? { groupId: wanted.groupId } : {};
  const taskIndexes =
    wanted.type === "fork"
      ? [wanted.task.index]
      : Array.from({ length: wanted.count }, (_, index) => index);
  // A feed's tasks are unknown in advance.
  const isOpen = wanted.type === "fork" ? !wanted.isRepeatable : wanted.source === "feed";
  const plan = {
    environment: "tally",
    split: "test",
    taskIndexes,
    sampleCount: size,
    seed,
    ...groupId,
    ...(isOpen && { isOpen: true, taskIndexes: undefined }),
  };
  return {
    format: 1,
    turnwright: "0.1.0",
    configuration: { agent },
    identity: { engine: "simulated" },
    found: {
      engine: { kind: "simulated", logprobConvention: "tempered", policyVersion: "1" },
      vocabularySize: 0x11_0002,
      plan,
      settings: { temperature: 1, agent },
    },
  };
}

/** Draws the attempt to fork: an episode of the run, or of a fork. */
async function drawFork(
  { disk, random }: SimulatedWorld,
  scenario: Scenario,
  { runs, dir }: { readonly runs: readonly FinishedRun[]; readonly dir: string },
): Promise<SimulatedRunOptions | undefined> {
  const places = runs.flatMap((run) =>
    run.samples
      // No row would train the shared tokens.
      .filter(({ reward }) => reward !== undefined)
      .map(({ rolloutId }) => ({ from: run.options, rolloutId })),
  );
  if (places.length === 0) return undefined;
  const { from, rolloutId } = random.pick(places);
  const files = disk.files(() => undefined);
  const index = await indexRecordings(from.dir, { files, wants: (id) => id === rolloutId });
  const ranges = index.get(rolloutId)?.ranges ?? [];
  const recorded = await readRecording(from.dir, { files, rolloutId, ranges, runId: undefined });
  if (recorded === undefined) throw new Error(`nothing is recorded of ${rolloutId}`);
  const { begin, inputs } = recorded;
  const turnIndex = random.between(0, 4);
  const before = inputsBefore(inputs, turnIndex);
  if (before === undefined) return undefined;
  const around = { random, clock: undefined as never, troubles: 0, draw: () => 0 };
  const seed = random.between(0, 1_000_000);
  const place = { rolloutId, turnIndex };
  const wanted = {
    type: "fork",
    groupId: forkGroupId(place, seed),
    task: tallyEnvironment(scenario.taskCount, around).task("test", begin.taskIndex),
    fork: { place, inputs: before, seed: begin.seed },
    isRepeatable: random.chance(0.5),
  } as const;
  const size = random.between(1, 3);
  const about = { dir, wanted, size, begun: size, branchAt: [], seed };
  return { ...about, manifest: manifestOf(scenario, about) };
}

/** The rows equal those of an uninterrupted run to the byte. */
async function compareCalm(
  seed: number,
  {
    world,
    scenario,
    first,
  }: {
    readonly world: SimulatedWorld;
    readonly scenario: Scenario;
    readonly first: SimulatedRunOptions;
  },
): Promise<readonly string[]> {
  const calm = new SimulatedWorld(createSeededRandom(`calm/${seed}`), seed);
  using _pace = simulatePace(createSeededRandom(`pace/${seed}`), () => calm.clock.note());
  await new SimulatedRun(calm, { ...scenario, queue: undefined }, first).play(0);
  const [stopped, whole] = [world, calm].map(({ disk }) => disk.text(`${first.dir}/samples.jsonl`));
  if (stopped === whole) return calm.wrong;
  return [...calm.wrong, "the rows are not those of a run that nothing stops"];
}

/**
 * The duration of work decides which caller continues first (see `takeTurn()`), and the seed
 * determines it too.
 */
function simulatePace(random: Random, onWork: () => void): Disposable {
  const now = performance.now.bind(performance);
  let atMs = 0;
  performance.now = () => {
    onWork();
    return (atMs += random.chance(0.1) ? 4 : 0);
  };
  return {
    [Symbol.dispose]() {
      performance.now = now;
    },
  };
}

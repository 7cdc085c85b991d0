import path from "node:path";
import type { Random } from "../../src/environment/seeded-random.ts";
import type { Input } from "../../src/episode/inputs/input.ts";
import { UsageError } from "../../src/errors.ts";
import type { Episode } from "../../src/episode/episode.ts";
import type { AttemptPlayer } from "../../src/run/attempt/attempt-player.ts";
import type { LiveRun } from "../../src/run/live-run.ts";
import { fakeMachine } from "../../src/run/machine.fixture.ts";
import { RunFolder, type RunManifest } from "../../src/run/folder/run-folder.ts";
import { startRun } from "../../src/run/start-run.ts";
import { ProcessDeath, type DiskFault } from "./memory-disk.ts";
import type { Scenario } from "./scenario.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { SimulatedQueue } from "./simulated-queue.ts";
import { simulatedSetup } from "./simulated-setup.ts";
import { simulatedSource, type WantedGroups } from "./simulated-source.ts";
import { SimulatedTrainer, type TakingMode } from "./simulated-trainer.ts";
import type { SimulatedWorld } from "./simulated-world.ts";

/** The way of playing a run, besides the scenario. */
export interface SimulatedRunOptions {
  readonly dir: string;
  readonly manifest: RunManifest;
  readonly wanted: WantedGroups;
  readonly size: number;
  readonly begun: number;
  readonly branchAt: readonly number[];
  /** Seeds the run. */
  readonly seed: number;
}

/** A hundred times the longest wait. */
const limitMs = 1e9;

/** Workers send heartbeats forever, so a run that has not ended after this time hangs. */
const queueLimitMs = 2 * 3_600_000;

/** A line of `recording.jsonl`, as far as it is looked at. */
interface WrittenLine {
  readonly type: string;
  readonly rolloutId: string;
  readonly attempt: number;
  readonly inputs?: readonly Input[];
}

/** One process that plays the run, from its start to its death or the run's end. */
interface Life {
  /** Counts them, from 0. */
  readonly number: number;
  readonly process: SimulatedProcess;
  /** The last one meets no more trouble: it has to bring the run to its end. */
  readonly isCalm: boolean;
  readonly troubles: number;
  readonly stop: AbortController;
  /** The disk's state and its past faults. */
  readonly disk: {
    callCount: number;
    faultCount: number;
    hasOpened: boolean;
    /** It has given the folder back. */
    hasLeft: boolean;
  };
  /** Episodes that this start has reported. */
  readonly reported: Set<string>;
}

/** A run in a folder, which one process after the other plays. */
export class SimulatedRun {
  readonly #world: SimulatedWorld;
  readonly #scenario: Scenario;
  readonly #options: SimulatedRunOptions;
  readonly #queue: SimulatedQueue | undefined;
  /** Episodes that were reported as finished. */
  readonly #reported = new Set<string>();
  /** Plays with only their start on the disk when their process died. */
  readonly tornPlays = new Set<string>();
  /** The consumer of its groups. */
  readonly trainer: SimulatedTrainer;

  constructor(world: SimulatedWorld, scenario: Scenario, options: SimulatedRunOptions) {
    this.#world = world;
    this.#scenario = scenario;
    this.#options = options;
    this.trainer = new SimulatedTrainer(world, scenario, options);
    const name = path.basename(options.dir);
    this.#queue = scenario.queue && new SimulatedQueue(world, scenario, name);
  }

  get dir(): string {
    return this.#options.dir;
  }

  /** Has process after process play it until it is at its end; resolves to how many these were. */
  async play(troubledLives: number): Promise<number> {
    this.#queue?.start();
    try {
      for (let life = 0; ; life++) {
        if (await this.#live(life, life >= troubledLives)) return life + 1;
        if (life > 12) throw new Error(`${this.dir} does not come to its end`);
        // Workers continue in the meantime.
        if (this.#queue !== undefined) await this.#pass(this.#world.random.between(0, 30_000));
      }
    } finally {
      this.#queue?.end();
    }
  }

  async #pass(ms: number): Promise<void> {
    const { clock } = this.#world;
    let isOver = false;
    clock.after(ms, () => (isOver = true));
    await clock.run(() => isOver, Infinity);
  }

  /** One process, from its start to its death or the run's end; whether that is the run's. */
  async #live(number: number, isCalm: boolean): Promise<boolean> {
    const { clock, disk, random, wrong } = this.#world;
    const { isUndisturbed } = this.#scenario;
    const life: Life = {
      number,
      isCalm,
      process: new SimulatedProcess(clock),
      troubles: isCalm || isUndisturbed ? 0 : random.next(),
      stop: new AbortController(),
      disk: { callCount: 0, faultCount: 0, hasOpened: false, hasLeft: false },
      reported: new Set(),
    };
    const { process, stop } = life;
    if (isCalm) this.#queue?.calm();
    let end: "finished" | "stopped" | undefined;
    let failure: unknown;
    let isOver = false;
    void this.#playOnce(life)
      .then((found) => (end = found))
      .catch((error: unknown) => (failure = error))
      .finally(() => {
        isOver = true;
        clock.note();
      });
    const mostMs = this.#queue === undefined ? limitMs : clock.now() + queueLimitMs;
    try {
      await clock.run(() => isOver || process.isDead, mostMs);
    } finally {
      clock.onActivity = () => {};
    }
    if (process.isDead) {
      // A dead process does nothing any more.
      stop.abort(new ProcessDeath("the process is dead"));
      if (random.chance(0.5)) disk.crash(random);
      return false;
    }
    life.disk.hasLeft = true;
    // Its planned later actions are not done any more.
    process.die();
    if (life.disk.hasOpened && disk.namesIn(this.dir).includes("run.lock")) {
      wrong.push("the folder's lock is still there");
    }
    if (failure !== undefined && !this.#isExpected(failure, life)) throw failure as Error;
    return end === "finished" && isCalm;
  }

  /** True if a start may end with this error. */
  #isExpected(failure: unknown, { disk, isCalm }: Life): boolean {
    if (!(failure instanceof UsageError)) return false;
    if (disk.faultCount > 0) return true;
    return !isCalm && /^Cannot (?:reach|hand out by|use --shared)/.test(failure.message);
  }

  async #playOnce(life: Life): Promise<"finished" | "stopped"> {
    const { more, random } = this.#world;
    const { isCalm, process } = life;
    const { isUndisturbed, leaves } = this.#scenario;
    await using folder = await RunFolder.open(this.dir, this.#options.manifest, {
      retryFailed: !isUndisturbed && (isCalm || random.chance(0.3)),
      files: this.#world.disk.files(this.#diskOf(life)),
      drawId: () => `${this.dir} ${random.next()}`,
      lock: { machine: fakeMachine({ pid: 100 + life.number }) },
    });
    life.disk.hasOpened = true;
    this.#lookInto(folder);
    if (random.chance(0.2)) await this.#tryAsSecond(life.number);
    await using handOut = await this.#queue?.handOut(process, life.troubles);
    const run = this.#start(folder, life, handOut?.player());
    this.#steer(run, life);
    if (more.chance(0.1)) this.#tryAgain(folder, life);
    if (more.chance(0.3)) this.#meddle(run, life);
    const leavesEarly = !isCalm && leaves && random.chance(0.5);
    await this.trainer.take(run, leavesEarly ? "leaves" : this.#drawMode(isCalm), process.clock);
    const { end, progress } = await run.result;
    if (progress.finished - progress.resumed !== life.reported.size) {
      const count = progress.finished - progress.resumed;
      this.#world.wrong.push(
        `${count} episodes are counted, and ${life.reported.size} were reported`,
      );
    }
    return end === "finished" ? "finished" : "stopped";
  }

  /** As it was opened, a folder serves one start. */
  #tryAgain(folder: RunFolder, life: Life): void {
    try {
      void this.#start(folder, life, undefined).interrupt();
      this.#world.wrong.push("two runs in one folder at once");
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
    }
  }

  #drawMode(isCalm: boolean): TakingMode {
    const { more } = this.#world;
    const { ahead, staleness } = this.#scenario;
    if (more.chance(0.6)) return "all";
    if (isCalm) return more.pick(["late", "two"]);
    // A run without room for undelivered groups waits for a consumer.
    const waits = ahead < Infinity || staleness !== undefined;
    return more.pick(
      waits ? ["throws", "late", "two"] : ["throws", "late", "two", "never", "hesitates"],
    );
  }

  #diskOf({
    disk,
    process,
    isCalm,
    troubles,
  }: Life): (operation: string, file: string) => DiskFault {
    const { clock, random, wrong } = this.#world;
    const deathCall = isCalm || random.chance(0.3) ? Infinity : random.between(1, 260);
    return (operation, file) => {
      clock.note();
      if (disk.hasLeft)
        wrong.push(`${operation} of ${file} by a process that gave the folder back`);
      disk.callCount += 1;
      if (process.isDead || disk.callCount > deathCall) {
        process.die();
        return "crash";
      }
      if (troubles === 0 || file.endsWith("run.lock")) return undefined;
      if (operation === "write" && random.chance(0.01 * troubles)) return "short";
      if (!random.chance(0.002 * troubles)) return undefined;
      disk.faultCount += 1;
      return "fail";
    };
  }

  #start(folder: RunFolder, life: Life, player: AttemptPlayer | undefined): LiveRun {
    const { random } = this.#world;
    const { ahead, attempts, keep, redeliver, staleness } = this.#scenario;
    const { size, begun, branchAt, seed, wanted } = this.#options;
    const { isCalm, process, stop } = life;
    const setup = simulatedSetup(this.#world, this.#scenario, life);
    const { environment } = setup;
    const { clock } = process;
    return startRun({
      source: simulatedSource(wanted, {
        environment,
        world: this.#world,
        isLast: isCalm,
        clock,
        noted: this.#notedGroups(),
      }),
      setup,
      grouping: { size, started: begun, attempts, branchAt, ...(keep && { keep }) },
      admission: {
        concurrency: random.between(1, 6),
        ...(ahead < Infinity && { ahead }),
      },
      ...(staleness && { staleness }),
      folder,
      ...(player && { player }),
      seed,
      redeliver,
      maxFailuresInRow: 1000,
      signal: stop.signal,
      onEpisode: (episode) => this.#hear(episode, life),
    });
  }

  /** An episode is reported. */
  #hear({ failure, outcome, reward, rolloutId }: Episode, { reported, troubles }: Life): void {
    const { disk, hungCount, wrong } = this.#world;
    const { agent, attempts, isUndisturbed, queue } = this.#scenario;
    if (reported.has(rolloutId)) wrong.push(`${rolloutId} is reported twice`);
    reported.add(rolloutId);
    const durable = disk.durableText(path.join(this.dir, "episodes.jsonl"));
    if (!durable.includes(`"rolloutId":"${rolloutId}"`)) {
      wrong.push(`${rolloutId} is reported, and a crash would lose it`);
    }
    if (outcome !== "failed") this.#reported.add(rolloutId);
    else if (reward !== undefined) wrong.push(`${rolloutId} failed and is scored`);
    if (failure?.code === "engine/timeout" && hungCount === 0) {
      wrong.push(`${rolloutId} waited in vain for an engine that was not hung`);
    }
    const { party } = failure ?? {};
    const isCalm = troubles === 0 && (queue === undefined || isUndisturbed);
    // The recording of a failure ends an attempt once more.
    const isQuiet = isCalm && agent === "steady" && (isUndisturbed || attempts > 1);
    if (failure !== undefined && (isQuiet || party === "internal" || party === "grader")) {
      wrong.push(`${rolloutId} failed although nothing was in its way: ${failure.message}`);
    }
    if (party === "agent" && agent === "steady") {
      wrong.push(`${rolloutId}: ${failure!.message}, and its agent does as before`);
    }
  }

  /** Reported episodes are on the disk; journalled turns must not be sampled again. */
  #lookInto(folder: RunFolder): void {
    const finished = new Set(folder.finished.map(({ rolloutId }) => rolloutId));
    if (finished.size < folder.finished.length) this.#world.wrong.push("an episode is there twice");
    for (const rolloutId of this.#reported) {
      if (!finished.has(rolloutId)) this.#world.wrong.push(`${rolloutId} was reported and is lost`);
    }
    const found = new Set<string>();
    // Read as it stands, and not as the product reads it.
    const latest = new Map<string, number>();
    const ended = new Set<string>();
    const journalled: { readonly rolloutId: string; attempt: number; promptHash: string }[] = [];
    for (const line of this.#wholeLines("recording.jsonl")) {
      const { attempt, inputs = [], rolloutId, type } = line as unknown as WrittenLine;
      const before = latest.get(rolloutId) ?? 0;
      const play = `${rolloutId}:${attempt}`;
      if (type === "begin" && before < attempt) this.tornPlays.add(play);
      if (type === "inputs") this.tornPlays.delete(play);
      latest.set(rolloutId, Math.max(before, attempt));
      if (type === "end") ended.add(play);
      for (const input of inputs) {
        const isWhole = input.type === "generation" && input.isPartial !== true;
        if (!isWhole || !("value" in input.outcome)) continue;
        journalled.push({ rolloutId, attempt, promptHash: input.promptHash });
      }
    }
    for (const { rolloutId, attempt, promptHash } of journalled) {
      const play = `${rolloutId}:${attempt}`;
      const isLatest = latest.get(rolloutId) === attempt && !ended.has(play);
      if (isLatest && !finished.has(rolloutId)) found.add(`${play} ${promptHash}`);
    }
    const { wanted } = this.#options;
    if (wanted.type === "fork") this.#forbidShared(wanted, found);
    // Workers that lost their attempt to another one continue to play for a while.
    this.#world.journalled = this.#queue === undefined ? found : new Set();
  }

  /** Forbids sampling the shared part of forks again. */
  #forbidShared(
    { fork, groupId }: Extract<WantedGroups, { type: "fork" }>,
    found: Set<string>,
  ): void {
    for (const input of fork.inputs.inputs) {
      if (input.type !== "generation") continue;
      for (let place = 0; place < this.#options.begun; place++) {
        for (let attempt = 1; attempt < 9; attempt++) {
          found.add(`${groupId}#${place}:${attempt} ${input.promptHash}`);
        }
      }
    }
  }

  /** The lines of a file; the last one is torn, or empty. */
  #wholeLines(name: string): readonly Record<string, unknown>[] {
    const lines = this.#world.disk.text(path.join(this.dir, name)).split("\n");
    return lines.slice(0, -1).map((line) => JSON.parse(line) as Record<string, unknown>);
  }

  #notedGroups(): ReadonlySet<string> {
    const begun = this.#wholeLines("events.jsonl").filter(({ type }) => type === "group-begun");
    return new Set(begun.map(({ groupId }) => String(groupId)));
  }

  /** While one process writes, no other one can. */
  async #tryAsSecond(life: number): Promise<void> {
    const machine = fakeMachine({ pid: 900 }, [100 + life]);
    try {
      await using _second = await RunFolder.open(this.dir, this.#options.manifest, {
        retryFailed: false,
        files: this.#world.disk.files(() => undefined),
        lock: { machine },
      });
      this.#world.wrong.push("two processes write at once");
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
    }
  }

  /** Weights change, runs are paused, interrupted and stopped at moments of their own. */
  #steer(run: LiveRun, { isCalm, process, stop }: Life): void {
    const { more, random } = this.#world;
    const { clock } = process;
    if (isCalm) return;
    const count = this.#scenario.isUndisturbed ? 0 : random.between(0, 3);
    for (let index = 0; index < count; index++) {
      clock.after(random.between(1, 4000), () => this.#update(run, random));
    }
    const queue = this.#scenario.isUndisturbed ? undefined : this.#queue;
    queue?.whenStill((ms) => {
      // No process waits any more for one that is paused for long.
      process.clock.after(more.between(1, ms), () => this.#update(run, more));
    });
    if (random.chance(0.2)) {
      clock.after(random.between(1, 4000), () => {
        void run.pause(random.pick(["hold", "interrupt"] as const)).catch(() => {});
        clock.after(random.between(1, 3000), () => run.resume());
      });
    }
    if (random.chance(0.2)) {
      clock.after(random.between(1, 4000), () => void run.interrupt().catch(() => {}));
    }
    if (random.chance(0.2)) {
      clock.after(random.between(1, 4000), () => stop.abort(new Error("stopped")));
    }
  }

  /** The policy has new weights. */
  #update(run: LiveRun, random: Random): void {
    const mode = random.pick(["hold", "interrupt", "finish"] as const);
    const version = this.#world.version + 1;
    // An update that waited is overtaken by one that did not: weights do not go back.
    const update = async (): Promise<void> => {
      if (mode !== "finish") this.#world.updateCount += 1;
      this.#world.version = Math.max(this.#world.version, version);
    };
    void run.updatePolicy(version, update, mode).catch(() => {});
  }

  /** Kills the process in the middle of any event: at any call of the disk, and any wait. */
  #meddle(run: LiveRun, { isCalm, process, stop }: Life): void {
    const { clock, more } = this.#world;
    let left = more.between(0, 400);
    clock.onActivity = () => {
      left -= 1;
      if (left > 0 || process.isDead) return;
      left = more.between(1, 400);
      const deed = more.pick(
        isCalm ? (["pause"] as const) : (["pause", "interrupt", "stop"] as const),
      );
      if (deed === "interrupt") void run.interrupt().catch(() => {});
      else if (deed === "stop") stop.abort(new Error("stopped"));
      else {
        void run.pause(more.pick(["hold", "interrupt"] as const)).catch(() => {});
        process.clock.after(more.between(1, 3000), () => run.resume());
      }
    };
  }
}

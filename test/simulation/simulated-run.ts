import path from "node:path";
import type { Input } from "../../src/episode/input.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import { UsageError } from "../../src/errors.ts";
import type { EpisodeGroup } from "../../src/run/group.ts";
import type { LiveRun } from "../../src/run/live-run.ts";
import { fakeMachine } from "../../src/run/machine.fixture.ts";
import { RunFolder, type RunManifest } from "../../src/run/run-folder.ts";
import { startRun } from "../../src/run/start-run.ts";
import { characterRenderer } from "../../src/testing/character-renderer.ts";
import { ProcessDeath, type DiskFault } from "./memory-disk.ts";
import type { Scenario } from "./scenario.ts";
import { simulatedSource, type WantedGroups } from "./simulated-source.ts";
import type { SimulatedWorld } from "./simulated-world.ts";
import { tallyAgent, tallyEnvironment, tallyUser, type Surroundings } from "./tally-world.ts";

/** How a run is played besides what the scenario says. */
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

/** No wait is as long as this, a hundred times over. */
const limitMs = 1e9;

/** The base of the sampling seeds. */
export const samplingSeed = 7;

/** A line of `recording.jsonl`, as far as it is looked at. */
interface WrittenLine {
  readonly type: string;
  readonly rolloutId: string;
  readonly attempt: number;
  readonly inputs?: readonly Input[];
}

/** A run in a folder, which one process after the other plays. */
export class SimulatedRun {
  readonly #world: SimulatedWorld;
  readonly #scenario: Scenario;
  readonly #options: SimulatedRunOptions;
  /** Episodes of which somebody was told that they are finished. */
  readonly #reported = new Set<string>();
  /** Places of groups of which it is noted that they were taken. */
  readonly #taken = new Set<number>();
  /** Plays of which nothing but the beginning was on the disk when their process died. */
  readonly tornPlays = new Set<string>();
  /** Groups that were handed out, each as it was last. */
  readonly handedOut = new Map<number, EpisodeGroup>();

  constructor(world: SimulatedWorld, scenario: Scenario, options: SimulatedRunOptions) {
    this.#world = world;
    this.#scenario = scenario;
    this.#options = options;
  }

  get dir(): string {
    return this.#options.dir;
  }

  /** Has process after process play it until it is at its end; resolves to how many these were. */
  async play(troubledLives: number): Promise<number> {
    for (let life = 0; ; life++) {
      // The last life meets no more trouble: it has to bring the run to its end.
      if (await this.#live(life, life >= troubledLives)) return life + 1;
      if (life > 12) throw new Error(`${this.dir} does not come to its end`);
    }
  }

  /** One process, from its start to its death or the run's end. */
  async #live(life: number, isCalm: boolean): Promise<boolean> {
    const { clock, disk, random } = this.#world;
    const { isUndisturbed } = this.#scenario;
    const troubles = isCalm || isUndisturbed ? 0 : random.next();
    const state = { isDead: false, callCount: 0, faultCount: 0 };
    const stop = new AbortController();
    const deathCall = isCalm || random.chance(0.3) ? Infinity : random.between(1, 260);
    const files = disk.files((operation, file): DiskFault => {
      clock.note();
      state.callCount += 1;
      if (state.isDead || state.callCount > deathCall) {
        state.isDead = true;
        return "crash";
      }
      if (troubles === 0 || file.endsWith("run.lock")) return undefined;
      if (operation === "write" && random.chance(0.01 * troubles)) return "short";
      if (!random.chance(0.002 * troubles)) return undefined;
      state.faultCount += 1;
      return "fail";
    });
    let end: "finished" | "stopped" | undefined;
    const playing = (async () => {
      await using folder = await RunFolder.open(this.dir, this.#options.manifest, {
        retryFailed: !isUndisturbed && (isCalm || random.chance(0.3)),
        files,
        drawId: () => `${this.dir} ${random.next()}`,
        lock: { machine: fakeMachine({ pid: 100 + life }) },
      });
      this.#lookInto(folder);
      if (random.chance(0.2)) await this.#tryAsSecond(life);
      const run = this.#start(folder, { isCalm, troubles, stop });
      this.#steer(run, isCalm, stop);
      await this.#takeAll(run, !isCalm && this.#scenario.leaves && random.chance(0.5));
      end = (await run.result).end === "finished" ? "finished" : "stopped";
    })();
    let failure: unknown;
    let isOver = false;
    void playing
      .catch((error: unknown) => (failure = error))
      .finally(() => {
        isOver = true;
        clock.note();
      });
    await clock.run(() => isOver || state.isDead, limitMs);
    if (state.isDead) {
      // Nothing of a dead process happens any more.
      stop.abort(new ProcessDeath("the process is dead"));
      clock.clear();
      if (random.chance(0.5)) disk.crash(random);
      return false;
    }
    if (failure !== undefined && !(failure instanceof UsageError && state.faultCount > 0)) {
      throw failure as Error;
    }
    return end === "finished" && isCalm;
  }

  #start(
    folder: RunFolder,
    life: { readonly isCalm: boolean; readonly troubles: number; readonly stop: AbortController },
  ): LiveRun {
    const { clock, draw, random } = this.#world;
    const { ahead, agent, attempts, isUndisturbed, keep, redeliver, staleness, taskCount } =
      this.#scenario;
    const { size, begun, branchAt, seed, wanted } = this.#options;
    const { isCalm, troubles, stop } = life;
    const around: Surroundings = {
      ...{ random, clock, troubles },
      draw: isUndisturbed ? () => 0 : draw,
    };
    const environment = tallyEnvironment(taskCount, around);
    const jump = (): number => (!isUndisturbed && random.chance(0.01) ? 3_600_000 : 0);
    return startRun({
      source: simulatedSource(wanted, {
        ...{ environment, world: this.#world, isLast: isCalm },
        noted: this.#notedGroups(),
      }),
      setup: {
        environment,
        user: tallyUser(around),
        engine: this.#world.engine(troubles),
        renderer: characterRenderer(),
        agent: tallyAgent(agent, random),
        sampling: { seed: samplingSeed },
        limits: { ...defaultLimits, maxTurns: 6 },
        // Clocks of machines jump.
        now: () => 1_000_000 + clock.now() + jump(),
        clock,
      },
      grouping: { size, begun, attempts, branchAt, ...(keep && { keep }) },
      admission: {
        concurrency: random.between(1, 6),
        ...(ahead < Infinity && { ahead }),
      },
      ...(staleness && { staleness }),
      folder,
      seed,
      redeliver,
      maxFailuresInRow: 1000,
      signal: stop.signal,
      onEpisode: ({ failure, outcome, reward, rolloutId }) => {
        const { hungCount, wrong } = this.#world;
        if (outcome !== "failed") this.#reported.add(rolloutId);
        else if (reward !== undefined) wrong.push(`${rolloutId} failed and is scored`);
        if (failure?.code === "engine/timeout" && hungCount === 0) {
          wrong.push(`${rolloutId} waited in vain for an engine that was not hung`);
        }
        const { party } = failure ?? {};
        // What is recorded of a failure ends an attempt once more.
        const isQuiet = troubles === 0 && agent === "steady" && (isUndisturbed || attempts > 1);
        if (failure !== undefined && (isQuiet || party === "internal" || party === "grader")) {
          wrong.push(`${rolloutId} failed although nothing was in its way: ${failure.message}`);
        }
        if (party === "agent" && agent === "steady") {
          wrong.push(`${rolloutId}: ${failure!.message}, and its agent does as before`);
        }
      },
    });
  }

  /** Takes the groups as they come: each at least once, and none again once that is noted. */
  async #takeAll(run: LiveRun, leavesEarly: boolean): Promise<void> {
    const { random, wrong } = this.#world;
    const { redeliver, staleness } = this.#scenario;
    const most = leavesEarly ? random.between(1, 2) : Infinity;
    const handedNow = new Set<number>();
    let last: number | undefined;
    for await (const group of run) {
      const { groupIndex } = group;
      // Whoever is given another one has taken the last.
      if (last !== undefined) this.#taken.add(last);
      if (handedNow.has(groupIndex) || (redeliver && this.#taken.has(groupIndex))) {
        wrong.push(`group ${groupIndex} was taken and is handed out again`);
      }
      wrong.push(...this.#checkGroup(group));
      handedNow.add(groupIndex);
      this.handedOut.set(groupIndex, group);
      last = groupIndex;
      // Trainers take their time, and change the weights.
      if (random.chance(0.5)) await this.#world.clock.sleep(random.between(1, 2000));
      if (staleness !== undefined) {
        this.#world.version += 1;
        run.announcePolicy(this.#world.version);
      }
      if (handedNow.size >= most) return;
    }
    if (last !== undefined) this.#taken.add(last);
  }

  /** A group that is handed out is whole, and nothing spoke against it. */
  #checkGroup(group: EpisodeGroup): readonly string[] {
    const { begun, size } = this.#options;
    const { episodes, groupId } = group;
    const found: string[] = [];
    const places = episodes.map(({ sampleIndex }) => sampleIndex);
    if (places.some((place, index) => place <= (places[index - 1] ?? -1))) {
      found.push(`${groupId} is handed out with the attempts ${places.join()}`);
    }
    const scored = episodes.filter(({ reward }) => reward !== undefined);
    if (scored.length < size && episodes.length < begun) {
      found.push(`${groupId} is handed out with ${episodes.length} attempts`);
    }
    if (episodes.some((episode) => episode.groupId !== groupId)) {
      found.push(`${groupId} is handed out with another group's attempts`);
    }
    if ((this.#scenario.keep?.(group) ?? true) !== true) {
      found.push(`${groupId} is handed out, and the filter says otherwise`);
    }
    return found;
  }

  /** What was reported is there; what was journalled must not be sampled again. */
  #lookInto(folder: RunFolder): void {
    const finished = new Set(folder.finished.map(({ rolloutId }) => rolloutId));
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
    this.#world.journalled = found;
  }

  /** Nor is what forks share. */
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
  #steer(run: LiveRun, isCalm: boolean, stop: AbortController): void {
    const { clock, random } = this.#world;
    if (isCalm) return;
    const count = this.#scenario.isUndisturbed ? 0 : random.between(0, 3);
    for (let index = 0; index < count; index++) {
      clock.after(random.between(1, 4000), () => {
        const mode = random.pick(["hold", "interrupt", "finish"] as const);
        const version = this.#world.version + 1;
        // An update that waited is overtaken by one that did not: weights do not go back.
        const update = async (): Promise<void> => {
          this.#world.version = Math.max(this.#world.version, version);
        };
        void run.updatePolicy(version, update, mode).catch(() => {});
      });
    }
    if (random.chance(0.2)) {
      clock.after(random.between(1, 4000), () => {
        void run.pause(random.pick(["hold", "interrupt"] as const));
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
}

import type { Clock } from "../../src/async/clock.ts";
import type { EpisodeGroup } from "../../src/run/schedule/group.ts";
import type { LiveRun } from "../../src/run/live-run.ts";
import type { Scenario } from "./scenario.ts";
import type { SimulatedRunOptions } from "./simulated-run.ts";
import type { SimulatedWorld } from "./simulated-world.ts";

/**
 * The way in which a trainer takes the groups of one start. `leaves`: after some of them, by
 * `break`. `throws`: in the middle of one. `late`: when much of the run is over. `never`. `two`:
 * two trainers at once. `hesitates`: takes some groups, has the run interrupted, and then takes the
 * others.
 */
export type TakingMode = "all" | "leaves" | "throws" | "late" | "never" | "two" | "hesitates";

/** The error that a trainer throws in the middle of its own work. */
class TrainerError extends Error {}

/** Takes the groups of a run, start after start: each at least once, and none again once that is noted. */
export class SimulatedTrainer {
  readonly #world: SimulatedWorld;
  readonly #scenario: Scenario;
  readonly #options: SimulatedRunOptions;
  /** Places of groups of which it is noted that they were taken. */
  readonly #taken = new Set<number>();
  /** Groups that were handed out, each as it was last. */
  readonly handedOut = new Map<number, EpisodeGroup>();

  constructor(world: SimulatedWorld, scenario: Scenario, options: SimulatedRunOptions) {
    this.#world = world;
    this.#scenario = scenario;
    this.#options = options;
  }

  /** Takes the groups that one start delivers, in the time of its process. */
  async take(run: LiveRun, mode: TakingMode, clock: Clock): Promise<void> {
    const { random } = this.#world;
    const handedNow = new Set<number>();
    switch (mode) {
      case "never":
        await run.result;
        return;
      case "late":
        await clock.sleep(random.between(1, 60_000));
        await this.#takeAll(run, handedNow, { clock });
        return;
      case "two":
        await Promise.all([
          this.#takeAll(run, handedNow, { clock }),
          this.#takeAll(run, handedNow, { clock }),
        ]);
        return;
      case "throws":
        await this.#takeAll(run, handedNow, {
          clock,
          most: random.between(1, 2),
          throws: true,
        }).catch((error: unknown) => {
          if (!(error instanceof TrainerError)) throw error;
        });
        return;
      case "hesitates":
        await this.#hesitate(run, handedNow, clock);
        return;
      case "leaves":
        await this.#takeAll(run, handedNow, { clock, most: random.between(1, 2) });
        return;
      case "all":
        await this.#takeAll(run, handedNow, { clock });
    }
  }

  async #takeAll(
    run: LiveRun,
    handedNow: Set<number>,
    {
      clock,
      most = Infinity,
      throws = false,
    }: { readonly clock: Clock; readonly most?: number; readonly throws?: boolean },
  ): Promise<void> {
    const { random } = this.#world;
    let last: number | undefined;
    for await (const group of run) {
      // A trainer that receives another group has processed the last one.
      if (last !== undefined) this.#taken.add(last);
      this.#note(group, handedNow);
      last = group.groupIndex;
      // Trainers take their time, and change the weights.
      if (random.chance(0.5)) await clock.sleep(random.between(1, 2000));
      this.#announce(run);
      if (handedNow.size < most) continue;
      if (throws) throw new TrainerError("the trainer fails");
      return;
    }
    if (last !== undefined) this.#taken.add(last);
  }

  async #hesitate(run: LiveRun, handedNow: Set<number>, clock: Clock): Promise<void> {
    const { random } = this.#world;
    const groups = run[Symbol.asyncIterator]();
    const first = await groups.next();
    if (first.done === true) return;
    this.#note(first.value, handedNow);
    await clock.sleep(random.between(1, 20_000));
    const interrupted = run.interrupt();
    interrupted.catch(() => {});
    if (random.chance(0.5)) await interrupted;
    let last = first.value.groupIndex;
    for (;;) {
      const next = await groups.next();
      this.#taken.add(last);
      if (next.done === true) return;
      this.#note(next.value, handedNow);
      last = next.value.groupIndex;
    }
  }

  #announce(run: LiveRun): void {
    if (this.#scenario.staleness === undefined) return;
    this.#world.version += 1;
    run.announcePolicy(this.#world.version);
  }

  #note(group: EpisodeGroup, handedNow: Set<number>): void {
    const { wrong } = this.#world;
    const { groupIndex } = group;
    const wasTaken = this.#scenario.redeliver && this.#taken.has(groupIndex);
    if (handedNow.has(groupIndex) || wasTaken) {
      wrong.push(`group ${groupIndex} was taken and is handed out again`);
    }
    wrong.push(...this.#checkGroup(group));
    handedNow.add(groupIndex);
    this.handedOut.set(groupIndex, group);
  }

  /** A delivered group is complete, and no rule excluded it. */
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
}

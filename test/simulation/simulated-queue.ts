import type { Engine } from "../../src/engine/engine.ts";
import { Redactor } from "../../src/secrets/redactor.ts";
import { HandOut } from "../../src/queue/hand-out/hand-out.ts";
import { QueueStore } from "../../src/queue/store/queue-store.ts";
import { QueueWorker } from "../../src/queue/worker/queue-worker.ts";
import { UsageError } from "../../src/errors.ts";
import { faultyClients, type StoreLine } from "../../src/queue/local/faulty-connection.fixture.ts";
import { FaultyStore } from "../../src/queue/local/faulty-connection.fixture.ts";
import { MemoryPlace } from "./memory-place.ts";
import type { Scenario } from "./scenario.ts";
import { SimulatedProcess } from "./simulated-process.ts";
import { samplingSeed, simulatedSetup } from "./simulated-setup.ts";
import type { SimulatedWorld } from "./simulated-world.ts";

/** The drawn parameters of a queue. */
export interface QueueScenario {
  readonly workerCount: number;
  /** Attempts that each worker plays at once. */
  readonly concurrency: number;
  readonly leaseMs: number;
  /** True if all processes share a place for files. */
  readonly hasPlace: boolean;
}

const config = { url: "redis://simulated" };
const terms = { tokenizer: "characters" };

/** The queue of a run: its store, its workers, and all of their faults. */
export class SimulatedQueue {
  readonly #world: SimulatedWorld;
  readonly #scenario: Scenario;
  readonly #queue: QueueScenario;
  readonly #run: string;
  readonly store: FaultyStore;
  readonly #place = new MemoryPlace();
  readonly #workers = new Set<SimulatedProcess>();
  #isCalm = false;
  #isOver = false;
  #tellStill: (ms: number) => void = () => {};

  constructor(world: SimulatedWorld, scenario: Scenario, run: string) {
    this.#world = world;
    this.#scenario = scenario;
    this.#queue = scenario.queue!;
    this.#run = run;
    this.store = new FaultyStore(() => world.clock.now());
  }

  /** Starts the workers, and the store's faults. */
  start(): void {
    for (let index = 0; index < this.#queue.workerCount; index++) void this.#employ();
    this.#befallStore();
  }

  /** Notifies the run's process of workers that stand still, and of the duration. */
  whenStill(tell: (ms: number) => void): void {
    this.#tellStill = tell;
  }

  /** No more troubles from here on. */
  calm(): void {
    this.#isCalm = true;
    this.store.awayUntilMs = 0;
    this.store.refusesUntilMs = 0;
    for (const worker of this.#workers) worker.freeze(0);
  }

  /** All processes of it end. */
  end(): void {
    this.#isOver = true;
    for (const worker of this.#workers) worker.die();
  }

  /** Hands the run out, as a process does that plays it. */
  async handOut(process: SimulatedProcess, troubles: number): Promise<HandOut & AsyncDisposable> {
    const store = await this.#connect(process, troubles);
    try {
      const place = this.#placeOf(process, troubles);
      const handOut = await HandOut.open({
        store,
        run: this.#run,
        environment: "tally",
        terms,
        isRecorded: true,
        sampling: { seed: samplingSeed },
        ...(place && { place }),
      });
      const close = handOut[Symbol.asyncDispose].bind(handOut);
      return Object.assign(handOut, {
        [Symbol.asyncDispose]: async () => {
          await close();
          await store[Symbol.asyncDispose]();
        },
      });
    } catch (error) {
      await store[Symbol.asyncDispose]();
      throw error;
    }
  }

  #placeOf(process: SimulatedProcess, troubles: number) {
    const { random } = this.#world;
    if (!this.#queue.hasPlace) return undefined;
    return this.#place.of(process, () => !this.#isCalm && random.chance(0.03 * troubles));
  }

  async #connect(process: SimulatedProcess, troubles: number): Promise<QueueStore> {
    const { clock, random } = this.#world;
    const isTroubled = (chance: number): boolean =>
      !this.#isCalm && random.chance(chance * troubles);
    const line: StoreLine = {
      store: this.store,
      process,
      note: () => clock.note(),
      delayMs: () => (random.chance(0.1) ? random.between(1, isTroubled(0.1) ? 3000 : 30) : 0),
      lostForMs: () => (isTroubled(0.01) ? random.between(1, 3000) : undefined),
      newsDelayMs: () =>
        isTroubled(0.1) ? undefined : random.chance(0.2) ? random.between(1, 50) : 0,
    };
    return await QueueStore.connect(config, {
      clients: faultyClients(line),
      clock: process.clock,
      env: {},
      wallNow: () => Math.floor(1_000_000 + clock.now()),
    });
  }

  /** A worker from its start to its end, and the one that comes in its place. */
  async #employ(): Promise<void> {
    const { clock, random, wrong } = this.#world;
    const { isUndisturbed } = this.#scenario;
    const { concurrency, leaseMs } = this.#queue;
    if (this.#isOver) return;
    const process = new SimulatedProcess(clock);
    this.#workers.add(process);
    const troubles = this.#isCalm ? 0 : random.next();
    const replace = (afterMs: number): void => {
      this.#workers.delete(process);
      clock.after(afterMs, () => void this.#employ());
    };
    try {
      const store = await this.#connect(process, troubles);
      const place = this.#placeOf(process, troubles);
      const setup = simulatedSetup(this.#world, this.#scenario, {
        process,
        troubles: isUndisturbed ? 0 : troubles,
      });
      const asking = { count: 0 };
      const engine = countCalls(setup.engine, asking);
      const worker = await QueueWorker.start({
        store,
        setup: { ...setup, engine },
        terms,
        redactor: new Redactor(),
        concurrency,
        leaseMs,
        ...(place && { place }),
      });
      worker.failed.catch((error: unknown) => {
        if (!process.isDead)
          wrong.push(
            `a worker cannot go on: ${error instanceof Error ? error.stack : String(error)}`,
          );
      });
      if (!this.#isCalm) this.#befallWorker({ process, worker, asking, store, replace });
    } catch (error) {
      if (!(error instanceof UsageError)) wrong.push(`a worker cannot begin: ${String(error)}`);
      process.die();
      replace(1000);
    }
  }

  /** Sooner or later a fault happens to a worker, or none does. */
  #befallWorker(about: {
    readonly process: SimulatedProcess;
    readonly worker: QueueWorker;
    /** The number of turns that it waits for. */
    readonly asking: { readonly count: number };
    readonly store: QueueStore;
    readonly replace: (afterMs: number) => void;
  }): void {
    const { clock, random, wrong } = this.#world;
    const { asking, process, replace, store, worker } = about;
    clock.after(random.between(1, 60_000), () => {
      if (this.#isCalm || this.#isOver) return;
      const fate = random.pick(["dies", "freezes", "leaves", "stays"] as const);
      if (fate === "dies") {
        process.die();
        replace(random.between(1, 20_000));
      } else if (fate === "freezes") {
        const ms = random.between(1, 4 * this.#queue.leaseMs);
        process.freeze(ms);
        this.#tellStill(ms);
        this.#befallWorker(about);
      } else if (fate === "leaves") {
        void (async () => {
          await worker.drain({ withinMs: random.between(0, 10_000) });
          await worker[Symbol.asyncDispose]();
          if (asking.count > 0) wrong.push("a worker that has left still asks the policy");
          process.die();
          await store[Symbol.asyncDispose]();
          replace(random.between(1, 5000));
        })();
      }
    });
  }

  #befallStore(): void {
    const { clock, random } = this.#world;
    clock.after(random.between(1000, 90_000), () => {
      if (this.#isCalm || this.#isOver) return;
      const fate = random.next();
      const ms = random.between(1, fate < 0.2 ? 60_000 : 8000);
      if (fate < 0.5) this.store.awayUntilMs = clock.now() + ms;
      else if (fate < 0.8) this.store.refusesUntilMs = clock.now() + ms;
      else {
        this.store.clear();
        this.store.awayUntilMs = clock.now() + ms;
      }
      this.#befallStore();
    });
  }
}

/** The engine, and the number of its running calls. */
function countCalls(engine: Engine, asking: { count: number }): Engine {
  return {
    ...engine,
    generate: async (request, options) => {
      asking.count += 1;
      try {
        return await engine.generate(request, options);
      } finally {
        asking.count -= 1;
      }
    },
  };
}

import type { UpdateMode } from "../../run/policy/policy-gate.ts";
import { acknowledgedKey, policyKey, workerAliveKey } from "../store/keys.ts";
import type { QueueStore } from "../store/queue-store.ts";
import { takeOutDead } from "../store/take-out-dead.ts";
import {
  firstPolicyState,
  readPolicyState,
  type KnownPolicy,
  type PolicyState,
} from "../run/policy-state.ts";

/**
 * The longest wait between two checks, in milliseconds. A notification makes a check happen
 * earlier.
 */
const lookAgainMs = 500;

/**
 * The policy's gate and version for all workers of a run. Both are in the store, so that workers also follow them after
 * a lost notification or a late start.
 */
export class RemotePolicy {
  readonly #store: QueueStore;
  readonly #run: string;
  #state: PolicyState;
  /** True while the gate is the one that the previous hand-out left. */
  #isInherited: boolean;
  #writing: Promise<void> = Promise.resolve();
  #isClosed = false;

  private constructor(
    store: QueueStore,
    run: string,
    { state, isInherited }: { readonly state: PolicyState; readonly isInherited: boolean },
  ) {
    this.#store = store;
    this.#run = run;
    this.#state = state;
    this.#isInherited = isInherited;
  }

  /**
   * Takes over the policy's state from the previous hand-out, unless `known` overrides it. Workers
   * that hold attempts continue according to this state.
   */
  static async open(
    store: QueueStore,
    run: string,
    { isMarked, known }: Pick<PolicyState, "isMarked"> & { readonly known?: KnownPolicy },
  ): Promise<RemotePolicy> {
    const before = (await readPolicyState(store, run)) ?? firstPolicyState;
    const { state: form, revision, gate, version } = before;
    const taken = known ?? { gate, ...(version !== undefined && { version }) };
    const policy = new RemotePolicy(store, run, {
      state: { state: form, revision, ...taken, isMarked },
      isInherited: known === undefined,
    });
    await policy.#change({});
    return policy;
  }

  get revision(): number {
    return this.#state.revision;
  }

  get version(): number | undefined {
    return this.#state.version;
  }

  /** Resolves when the store has accepted or refused all changes so far. */
  async written(): Promise<void> {
    for (let last: Promise<void> | undefined; last !== this.#writing; await last) {
      last = this.#writing;
    }
  }

  // If the write fails, the next heartbeat repeats it (see `keep()`).

  /** Announces a version of the policy to the workers. */
  announce(version: number): void {
    this.#change({ version }).catch(() => {});
  }

  /**
   * Closes the gate. Resolves when no worker with a heartbeat samples. Rejects if the store refuses the write; the next
   * heartbeat then closes the gate, unless `open()` comes first. Rejects if the hand-out ends earlier.
   */
  async close(mode: UpdateMode): Promise<void> {
    if (mode === "finish") return;
    this.#isInherited = false;
    await this.#change({ gate: mode });
    await this.#settled(this.#state.revision);
  }

  /** Opens the gate, so that workers sample again. */
  open(): void {
    this.#isInherited = false;
    if (this.#state.gate !== "open") this.#change({ gate: "open" }).catch(() => {});
  }

  /** Opens the gate if only an earlier process had closed it. */
  begin(): void {
    if (this.#isInherited) this.open();
  }

  /** Writes the state again if the store has lost it. Returns true if the store had lost it. */
  async keep(): Promise<boolean> {
    const found = await readPolicyState(this.#store, this.#run);
    if (found !== undefined && found.revision >= this.#state.revision) return false;
    await this.#change({});
    return true;
  }

  /** Stops waiting for workers. `close()` then rejects. */
  stop(): void {
    this.#isClosed = true;
  }

  async #change(change: Partial<Pick<PolicyState, "gate" | "version">>): Promise<void> {
    // A store that has lost data may have an older revision than the one that workers know.
    const revision = Math.max(this.#state.revision + 1, this.#store.wallNow());
    this.#state = { ...this.#state, ...change, revision };
    const written = this.#writing.then(async () => {
      await this.#store.redis.set(policyKey(this.#run), JSON.stringify(this.#state));
      await this.#store.publish({ type: "run", run: this.#run });
    });
    this.#writing = written.catch(() => {});
    await written;
  }

  /** Resolves when each worker with a heartbeat has acknowledged the revision. */
  async #settled(revision: number): Promise<void> {
    const news = { wake: (): void => {} };
    const stop = this.#store.listen(({ type, run }) => {
      if (type === "acknowledged" && run === this.#run) news.wake();
    });
    try {
      while (await this.#isAwaited(revision)) {
        // The next hand-out would deliver the samples of these workers.
        if (this.#isClosed) throw new Error("the run ended while workers were sampling");
        await new Promise<void>((resolve) => {
          const callOff = this.#store.clock.after(lookAgainMs, resolve);
          news.wake = () => {
            callOff();
            resolve();
          };
        });
      }
    } finally {
      stop();
    }
  }

  async #isAwaited(revision: number): Promise<boolean> {
    const { redis } = this.#store;
    const known = await redis.hgetall(acknowledgedKey(this.#run));
    const late = Object.keys(known).filter((worker) => Number(known[worker]) < revision);
    if (late.length === 0) return false;
    // A worker without a heartbeat has stopped sampling, and none of its results can be delivered.
    const alive = await redis.mget(late.map((worker) => workerAliveKey(worker)));
    const dead = late.filter((_, index) => alive[index] === null);
    const gone = await takeOutDead(redis, acknowledgedKey(this.#run), dead);
    return gone < late.length;
  }
}

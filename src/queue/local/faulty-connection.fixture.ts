import { systemClock, type Clock } from "../../async/clock.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { StoreClients } from "../store/load-client.ts";
import { localClients } from "./local-clients.ts";
import { LocalStore, type JobEvent } from "./local-store.ts";
import { performCommand, type StoreCommand, type StoreConnection } from "./store-connection.ts";

/** A store that can be away, refuse writes, or lose its data. */
export class FaultyStore extends LocalStore {
  readonly #now: () => number;
  /** The time until which no process reaches it. */
  awayUntilMs = 0;
  /** The time until which it refuses all writes. */
  refusesUntilMs = 0;

  /** @param now - The simulated time in milliseconds. */
  constructor(now: () => number) {
    super({ now, wallNow: () => 1_000_000 + now() });
    this.#now = now;
  }

  get isWritable(): boolean {
    return this.#now() >= this.refusesUntilMs;
  }
}

/** A process that speaks to the store. */
export interface StoreUser {
  readonly clock: Clock;
  /** True if none of its commands is answered any more. */
  readonly isDead: boolean;
  /** True if it learns of answers only when its clock continues. */
  readonly isFrozen: boolean;
}

/** The faults between a process and the store. */
export interface StoreLine {
  readonly store: FaultyStore;
  readonly process: StoreUser;
  /** Called with each command. */
  readonly note: () => void;
  /** The time that a command travels, in milliseconds; 0 for none. */
  readonly delayMs: () => number;
  /** The time until a command with a lost answer is sent again; `undefined` if its answer arrived. */
  readonly lostForMs: () => number | undefined;
  /** The delay of a notification in milliseconds; `undefined` if it is lost. */
  readonly newsDelayMs: () => number | undefined;
}

/** A line without faults and without delays. */
export function plainLine(store: FaultyStore): StoreLine {
  return {
    store,
    process: { clock: systemClock, isDead: false, isFrozen: false },
    note: () => {},
    delayMs: () => 0,
    lostForMs: () => undefined,
    newsDelayMs: () => 0,
  };
}

/** The clients of one process. */
export function faultyClients(line: StoreLine): StoreClients {
  return localClients(() => new FaultyConnection(line));
}

const reading: ReadonlySet<string> = new Set([
  "time",
  "get",
  "mget",
  "exists",
  "hget",
  "hmget",
  "hgetall",
  "hexists",
  "smismember",
  "publish",
]);

/** Performs commands in their order, with the faults of its line. */
class FaultyConnection implements StoreConnection {
  readonly clock: Clock;
  readonly #line: StoreLine;
  #last: Promise<void> = Promise.resolve();
  #isClosed = false;
  #isThere = true;
  #report: (isThere: boolean) => void = () => {};

  constructor(line: StoreLine) {
    this.#line = line;
    this.clock = line.process.clock;
  }

  onContact(listener: (isThere: boolean) => void): void {
    this.#report = listener;
  }

  close(): void {
    this.#isClosed = true;
  }

  async perform(commands: readonly StoreCommand[]): Promise<readonly unknown[]> {
    // The caller's stack is of more use than that of the answer.
    const refusal = new Error("MISCONF Errors writing to the AOF file: made up");
    const before = this.#last;
    const done = withResolvers();
    this.#last = done.promise;
    await before;
    try {
      // The client has rejected the command already.
      if (this.#isClosed) return await new Promise(() => {});
      return await this.#send(commands, refusal);
    } finally {
      done.resolve();
    }
  }

  async #send(commands: readonly StoreCommand[], refusal: Error): Promise<readonly unknown[]> {
    const { process, store } = this.#line;
    for (;;) {
      this.#line.note();
      if (process.isDead) return await new Promise(() => {});
      const awayMs = store.awayUntilMs - this.clock.now();
      if (awayMs > 0) {
        this.#noteContact(false);
        await this.clock.sleep(awayMs);
        continue;
      }
      this.#noteContact(true);
      const delayMs = process.isFrozen ? 1 : this.#line.delayMs();
      if (delayMs > 0) {
        await this.clock.sleep(delayMs);
        if (store.awayUntilMs > this.clock.now()) continue;
      }
      // A refusal is an answer, too.
      const answers = this.#perform(commands, refusal);
      const lostMs = this.#line.lostForMs();
      if (lostMs === undefined) return answers;
      await this.clock.sleep(lostMs);
    }
  }

  #perform(commands: readonly StoreCommand[], refusal: Error): readonly unknown[] {
    const { store } = this.#line;
    const writes = commands.some(([name]) => !reading.has(name));
    if (writes && !store.isWritable) {
      if (commands.length === 1) throw refusal;
      throw new Error("EXECABORT Transaction discarded because of previous errors.", {
        cause: refusal,
      });
    }
    return commands.map((command) => performCommand(store, command));
  }

  #noteContact(isThere: boolean): void {
    if (isThere === this.#isThere) return;
    this.#isThere = isThere;
    this.#report(isThere);
  }

  subscribe(listener: (channel: string, text: string) => void): () => void {
    return this.#line.store.subscribe((channel, text) => {
      this.#later(() => listener(channel, text));
    });
  }

  watch(base: string, watcher: (event: JobEvent) => void): () => void {
    return this.#line.store.watch(base, (event) => this.#later(() => watcher(event)));
  }

  #later(deliver: () => void): void {
    const { newsDelayMs, process } = this.#line;
    if (process.isDead) return;
    const delayMs = newsDelayMs();
    if (delayMs !== undefined) process.clock.after(delayMs, deliver);
  }
}

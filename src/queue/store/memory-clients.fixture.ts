import { systemClock, type Clock } from "../../async/clock.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { StoreClients } from "./load-client.ts";
import { holdScript, leaveScript } from "./held-key.ts";
import { takeOutScript } from "./take-out-dead.ts";
import type { MemoryStore, NewJob, QueueEvent, TakenJob } from "./memory-store.fixture.ts";

/** A process that speaks to the store. */
export interface StoreUser {
  readonly clock: Clock;
  /** Its commands are not answered any more. */
  readonly isDead: boolean;
  /** The client receives answers only when its clock advances. */
  readonly isFrozen: boolean;
}

/** The simulated connection between a process and the store. */
export interface StoreLine {
  readonly store: MemoryStore;
  readonly process: StoreUser;
  /** Notified of each command. */
  readonly note: () => void;
  /** Delay of a command, in milliseconds; 0 for none. */
  readonly delayMs: () => number;
  /**
   * Delay until a command is sent again whose answer was lost with its connection. `undefined`: the
   * answer was not lost.
   */
  readonly lostForMs: () => number | undefined;
  /** Delay of published messages, in milliseconds; `undefined` if they are lost. */
  readonly newsDelayMs: () => number | undefined;
}

/** A line without faults and delays. */
export function plainLine(store: MemoryStore): StoreLine {
  return {
    store,
    process: { clock: systemClock, isDead: false, isFrozen: false },
    note: () => {},
    delayMs: () => 0,
    lostForMs: () => undefined,
    newsDelayMs: () => 0,
  };
}

/** The packages that speak to the store, as one process has them: they speak to one in memory. */
export function memoryClients(line: StoreLine): StoreClients {
  const own = {
    Redis: class extends MemoryRedis {
      constructor() {
        super(line);
      }
    },
    bullmq: { Queue: MemoryQueue, QueueEvents: MemoryQueueEvents, Worker: MemoryWorker },
  };
  return own as unknown as StoreClients;
}

type Listener = (...about: never[]) => void;

/** One connection: answers commands in their order. */
class MemoryRedis {
  status: "ready" | "reconnecting" | "end" = "ready";
  readonly line: StoreLine;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #pending = new Set<(error: Error) => void>();
  #last: Promise<void> = Promise.resolve();
  #unsubscribe = (): void => {};

  constructor(line: StoreLine) {
    this.line = line;
  }

  duplicate(): MemoryRedis {
    return new MemoryRedis(this.line);
  }

  on(event: string, listener: Listener): this {
    const listeners = this.#listeners.get(event) ?? new Set();
    this.#listeners.set(event, listeners);
    listeners.add(listener);
    return this;
  }

  removeAllListeners(event: string): this {
    this.#listeners.delete(event);
    return this;
  }

  disconnect(): void {
    this.status = "end";
    this.#unsubscribe();
    for (const reject of Array.from(this.#pending)) reject(new Error("Connection is closed."));
  }

  /** Sends a command to the store; waits while the store is down. */
  async ask<Answer>(work: () => Answer): Promise<Answer> {
    const before = this.#last;
    const done = withResolvers();
    this.#last = done.promise;
    const answer = withResolvers<Answer>();
    this.#pending.add(answer.reject);
    if (this.status === "end") answer.reject(new Error("Connection is closed."));
    void before.then(async () => {
      try {
        if (this.status !== "end") answer.resolve(await this.#ask(work));
      } catch (error) {
        answer.reject(error);
      } finally {
        done.resolve();
      }
    });
    try {
      return await answer.promise;
    } finally {
      this.#pending.delete(answer.reject);
    }
  }

  async #ask<Answer>(work: () => Answer): Promise<Answer> {
    const { clock } = this.line.process;
    const { store } = this.line;
    for (;;) {
      this.line.note();
      if (this.line.process.isDead) return await new Promise(() => {});
      const awayMs = store.awayUntilMs - clock.now();
      if (awayMs > 0) {
        this.#tell("reconnecting", "close");
        await clock.sleep(awayMs);
        continue;
      }
      this.#tell("ready", "ready");
      const delayMs = this.line.process.isFrozen ? 1 : this.line.delayMs();
      if (delayMs > 0) {
        await clock.sleep(delayMs);
        if (store.awayUntilMs > clock.now()) continue;
      }
      // A refusal is an answer as well.
      const answer = work();
      const lostMs = this.line.lostForMs();
      if (lostMs === undefined) return answer;
      await clock.sleep(lostMs);
    }
  }

  #tell(status: MemoryRedis["status"], event: string): void {
    if (this.status === status || this.status === "end") return;
    this.status = status;
    for (const listener of this.#listeners.get(event) ?? []) listener();
  }

  /** Sends a command that changes the store. */
  async write<Answer>(work: () => Answer): Promise<Answer> {
    // Made here, because the stack trace of the caller is the useful one.
    const refusal = new Error("MISCONF Errors writing to the AOF file: made up");
    return await this.ask(() => {
      if (!this.line.store.isWritable) throw refusal;
      return work();
    });
  }

  async subscribe(channel: string): Promise<void> {
    const { newsDelayMs, process, store } = this.line;
    this.#unsubscribe = store.subscribe((from, text) => {
      if (from !== channel || process.isDead) return;
      const delayMs = newsDelayMs();
      if (delayMs === undefined) return;
      process.clock.after(delayMs, () => {
        for (const listener of this.#listeners.get("message") ?? []) {
          (listener as (channel: string, text: string) => void)(from, text);
        }
      });
    });
    await this.ask(() => {});
  }

  time = async () => await this.ask(() => [String(Math.floor(this.#wallMs() / 1000)), "0"]);
  select = async () => await this.ask(() => "OK");
  get = async (key: string) => await this.ask(() => this.line.store.get(key));
  exists = async (key: string) => ((await this.get(key)) === null ? 0 : 1);
  set = async (key: string, value: string, _unit?: "PX", ms?: number) =>
    await this.write(() => this.line.store.set(key, value, ms));
  /** Knows the scripts that there are. */
  eval = async (script: string, count: number, ...given: (string | number)[]) =>
    await this.write(() => {
      const { store } = this.line;
      const [key, ...keys] = given.slice(0, count).map(String);
      const [token, livesMs] = [String(given[count]), Number(given[count + 1] ?? 0)];
      if (script === takeOutScript) {
        const dead = given.slice(count).filter((_, index) => store.get(keys[index]!) === null);
        store.hdel(key!, ...dead.map(String));
        return dead.length;
      }
      if (script === holdScript) return store.hold(key!, token, livesMs);
      if (script === leaveScript) return store.get(key!) === token ? store.del(key!) : 0;
      throw new Error(`NOSCRIPT ${script}`);
    });
  del = async (...keys: string[]) => await this.write(() => this.line.store.del(...keys));
  hset = async (key: string, field: string, value: string) =>
    await this.write(() => this.line.store.hset(key, field, value));
  hget = async (key: string, field: string) =>
    await this.ask(() => this.line.store.hget(key, field));
  hgetall = async (key: string) => await this.ask(() => this.line.store.hgetall(key));
  hexists = async (key: string, field: string) =>
    await this.ask(() => this.line.store.hexists(key, field));
  hdel = async (key: string, ...fields: string[]) =>
    await this.write(() => this.line.store.hdel(key, ...fields));
  mget = async (keys: string[]) =>
    await this.ask(() => keys.map((key) => this.line.store.get(key)));
  srem = async (key: string, ...members: string[]) =>
    await this.write(() => this.line.store.srem(key, ...members));
  smismember = async (key: string, ...members: string[]) =>
    await this.ask(() => this.line.store.smismember(key, ...members));
  publish = async (channel: string, text: string) =>
    await this.ask(() => this.line.store.publish(channel, text));

  /** All of them at once, or none. */
  multi(): Batch {
    return new Batch(async (work) => {
      try {
        return await this.write(work);
      } catch (error) {
        if (!(error instanceof Error) || !error.message.startsWith("MISCONF")) throw error;
        throw new Error("EXECABORT Transaction discarded because of previous errors.", {
          cause: error,
        });
      }
    }, this.line.store);
  }

  pipeline(): Batch {
    return new Batch(async (work) => await this.ask(work), this.line.store);
  }

  #wallMs(): number {
    return 1_000_000 + this.line.process.clock.now();
  }
}

type Send = <Answer>(work: () => Answer) => Promise<Answer>;

/** Several commands that are sent together. */
class Batch {
  readonly #send: Send;
  readonly #store: MemoryStore;
  readonly #works: (() => unknown)[] = [];

  constructor(send: Send, store: MemoryStore) {
    this.#send = send;
    this.#store = store;
  }

  set = (key: string, value: string, _unit: "PX", ms: number, only?: "XX") =>
    this.#add(() =>
      only === "XX" && this.#store.get(key) === null ? null : this.#store.set(key, value, ms),
    );
  exists = (key: string) => this.#add(() => (this.#store.get(key) === null ? 0 : 1));
  del = (...keys: string[]) => this.#add(() => this.#store.del(...keys));
  hset = (key: string, field: string, value: string | number) =>
    this.#add(() => this.#store.hset(key, field, value));
  hdel = (key: string, field: string) => this.#add(() => this.#store.hdel(key, field));
  hmget = (key: string, ...fields: string[]) => this.#add(() => this.#store.hmget(key, ...fields));
  sadd = (key: string, ...members: string[]) => this.#add(() => this.#store.sadd(key, ...members));
  // No expiring key lives as long as a simulation.
  expire = () => this.#add(() => 1);

  exec = async (): Promise<readonly (readonly [null, unknown])[]> =>
    await this.#send(() => this.#works.map((work) => [null, work()] as const));

  #add(work: () => unknown): this {
    this.#works.push(work);
    return this;
  }
}

interface BullOptions {
  readonly connection: MemoryRedis;
  readonly prefix: string;
}

/** The common part of BullMQ's classes. */
class MemoryBull {
  readonly redis: MemoryRedis;
  readonly base: string;

  constructor(name: string, { connection, prefix }: BullOptions) {
    this.redis = connection;
    this.base = `${prefix}:${name}`;
  }

  get store(): MemoryStore {
    return this.redis.line.store;
  }

  on(_event: string, _listener: Listener): this {
    return this;
  }

  async waitUntilReady(): Promise<void> {
    await this.redis.ask(() => {});
  }

  async close(): Promise<void> {
    await Promise.resolve();
  }
}

class MemoryQueue extends MemoryBull {
  toKey(id: string): string {
    return `${this.base}:${id}`;
  }

  async addBulk(jobs: readonly NewJob[]): Promise<void> {
    await this.redis.write(() => {
      for (const job of jobs) this.store.addJob(this.base, job);
    });
  }

  async remove(id: string): Promise<number> {
    return await this.redis.write(() => this.store.removeJob(this.base, id));
  }

  async getJob(id: string) {
    const there = await this.redis.ask(() => this.store.hget(this.toKey(id), "name"));
    if (there === null) return undefined;
    return {
      changePriority: async ({ priority }: { readonly priority: number }) => {
        await this.redis.write(() => this.store.changePriority(this.base, id, priority));
      },
    };
  }

  async obliterate(): Promise<void> {
    await this.redis.write(() => this.store.obliterate(this.base));
  }
}

class MemoryQueueEvents extends MemoryBull {
  readonly #stops: (() => void)[] = [];

  override on(event: string, listener: Listener): this {
    const { newsDelayMs, process } = this.redis.line;
    const stop = this.store.watch(this.base, (told: QueueEvent) => {
      const delayMs = told.event === event && !process.isDead ? newsDelayMs() : undefined;
      if (delayMs === undefined) return;
      const about =
        told.event === "completed"
          ? { ...told, returnvalue: JSON.parse(told.returnvalue) as unknown }
          : told;
      process.clock.after(delayMs, () => (listener as (about: unknown) => void)(about));
    });
    this.#stops.push(stop);
    return this;
  }

  override async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    await Promise.resolve();
  }
}

class MemoryWorker extends MemoryBull {
  readonly #lockMs: number;
  readonly #checkMs: number;
  #callOff = (): void => {};
  #isClosed = false;

  constructor(
    name: string,
    _processor: null,
    options: BullOptions & { readonly lockDuration: number; readonly stalledInterval: number },
  ) {
    super(name, options);
    this.#lockMs = options.lockDuration;
    this.#checkMs = options.stalledInterval;
  }

  async getNextJob(token: string): Promise<MemoryJob | undefined> {
    const lockMs = this.#lockMs;
    const job = await this.redis.write(() => this.store.takeJob(this.base, { token, lockMs }));
    return job && new MemoryJob(this, job);
  }

  async extendJobLocks(ids: string[], tokens: string[], lockMs: number) {
    return await this.redis.write(() => this.store.extendLocks(this.base, ids, { tokens, lockMs }));
  }

  async startStalledCheckTimer(): Promise<void> {
    await this.redis
      .write(() => this.store.returnStalled(this.base, this.#checkMs))
      .catch(() => {});
    if (this.#isClosed) return;
    this.#callOff = this.redis.line.process.clock.after(this.#checkMs, () => {
      void this.startStalledCheckTimer();
    });
  }

  override async close(): Promise<void> {
    this.#isClosed = true;
    this.#callOff();
    await Promise.resolve();
  }
}

class MemoryJob {
  readonly id: string;
  readonly data: unknown;
  readonly attemptsStarted: number;
  readonly #worker: MemoryWorker;

  constructor(worker: MemoryWorker, { attemptsStarted, data, id }: TakenJob) {
    this.#worker = worker;
    this.id = id;
    this.attemptsStarted = attemptsStarted;
    this.data = JSON.parse(data);
  }

  async moveToCompleted(value: unknown, token: string): Promise<void> {
    const { base, redis, store } = this.#worker;
    await redis.write(() => store.completeJob(base, this.id, { token, value }));
  }

  async moveToWait(token: string): Promise<void> {
    const { base, redis, store } = this.#worker;
    await redis.write(() => store.returnJob(base, this.id, token));
  }

  async remove(): Promise<void> {
    const { base, redis, store } = this.#worker;
    await redis.write(() => store.removeJob(base, this.id));
  }
}

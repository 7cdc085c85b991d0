import type { StoreClients } from "../store/load-client.ts";
import { holdScript, leaveScript } from "../store/held-key.ts";
import { takeOutScript } from "../store/take-out-dead.ts";
import type { JobEvent, NewJob, TakenJob } from "./local-store.ts";
import type { StoreCommand, StoreConnection } from "./store-connection.ts";

/**
 * Returns classes that replace those of the packages `ioredis` and `bullmq`, with the methods that
 * the queue uses. They use a `LocalStore`.
 * @param connect - Opens a connection to the store.
 */
export function localClients(connect: () => StoreConnection): StoreClients {
  const clients = {
    Redis: class extends LocalRedis {
      constructor() {
        super(connect);
      }
    },
    bullmq: { Queue: LocalQueue, QueueEvents: LocalQueueEvents, Worker: LocalWorker },
  };
  return clients as unknown as StoreClients;
}

type Listener = (...about: never[]) => void;

/** A connection with the methods of `ioredis`. */
class LocalRedis {
  status: "ready" | "reconnecting" | "end" = "ready";
  readonly connection: StoreConnection;
  readonly #connect: () => StoreConnection;
  readonly #listeners = new Map<string, Set<Listener>>();
  readonly #pending = new Set<(error: Error) => void>();
  #unsubscribe = (): void => {};

  constructor(connect: () => StoreConnection) {
    this.#connect = connect;
    this.connection = connect();
    this.connection.onContact?.((isThere) => this.#noteContact(isThere));
  }

  duplicate(): LocalRedis {
    return new LocalRedis(this.#connect);
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
    this.connection.close();
    for (const reject of Array.from(this.#pending)) reject(closed());
  }

  /** Performs one command. Rejects if the connection is closed first. */
  async ask<Answer>(...command: StoreCommand): Promise<Answer> {
    const [answer] = await this.askAll([command]);
    return answer as Answer;
  }

  /** Performs commands together. Rejects if the connection is closed first. */
  async askAll(commands: readonly StoreCommand[]): Promise<readonly unknown[]> {
    if (this.status === "end") throw closed();
    return await new Promise((resolve, reject) => {
      this.#pending.add(reject);
      this.connection
        .perform(commands)
        .then(resolve, reject)
        .finally(() => this.#pending.delete(reject));
    });
  }

  #noteContact(isThere: boolean): void {
    const status = isThere ? "ready" : "reconnecting";
    if (this.status === status || this.status === "end") return;
    this.status = status;
    for (const listener of this.#listeners.get(isThere ? "ready" : "close") ?? []) listener();
  }

  async subscribe(channel: string): Promise<void> {
    this.#unsubscribe = this.connection.subscribe((from, text) => {
      if (from !== channel) return;
      for (const listener of this.#listeners.get("message") ?? []) {
        (listener as (channel: string, text: string) => void)(from, text);
      }
    });
    await this.ask("time");
  }

  time = async () => await this.ask("time");
  select = async () => await this.ask("time");
  get = async (key: string) => await this.ask("get", key);
  exists = async (key: string) => await this.ask("exists", key);
  set = async (key: string, value: string, _unit?: "PX", livesMs?: number) =>
    await this.ask("set", key, value, { livesMs });
  /** Performs one of the Lua scripts that the queue uses. */
  eval = async (script: string, count: number, ...given: (string | number)[]) => {
    const [key, ...keys] = given.slice(0, count);
    const values = given.slice(count);
    if (script === takeOutScript) return await this.ask("takeOut", key, keys, values);
    if (script === holdScript) return await this.ask("hold", key, ...values);
    if (script === leaveScript) return await this.ask("leave", key, ...values);
    throw new Error(`NOSCRIPT ${script}`);
  };
  del = async (...keys: string[]) => await this.ask("del", ...keys);
  hset = async (key: string, field: string, value: string) =>
    await this.ask("hset", key, field, value);
  hget = async (key: string, field: string) => await this.ask("hget", key, field);
  hgetall = async (key: string) => await this.ask("hgetall", key);
  hexists = async (key: string, field: string) => await this.ask("hexists", key, field);
  hdel = async (key: string, ...fields: string[]) => await this.ask("hdel", key, ...fields);
  mget = async (keys: string[]) => await this.ask("mget", keys);
  srem = async (key: string, ...members: string[]) => await this.ask("srem", key, ...members);
  smismember = async (key: string, ...members: string[]) =>
    await this.ask("smismember", key, ...members);
  publish = async (channel: string, text: string) => await this.ask("publish", channel, text);

  multi(): CommandBatch {
    return new CommandBatch(this);
  }

  pipeline(): CommandBatch {
    return new CommandBatch(this);
  }
}

function closed(): Error {
  return new Error("Connection is closed.");
}

/** Several commands that are performed together. */
class CommandBatch {
  readonly #redis: LocalRedis;
  readonly #commands: StoreCommand[] = [];

  constructor(redis: LocalRedis) {
    this.#redis = redis;
  }

  set = (key: string, value: string, _unit: "PX", livesMs: number, only?: "XX") =>
    this.#add("set", key, value, { livesMs, isRenewal: only === "XX" });
  exists = (key: string) => this.#add("exists", key);
  del = (...keys: string[]) => this.#add("del", ...keys);
  hset = (key: string, field: string, value: string | number) =>
    this.#add("hset", key, field, value);
  hdel = (key: string, field: string) => this.#add("hdel", key, field);
  hmget = (key: string, ...fields: string[]) => this.#add("hmget", key, ...fields);
  sadd = (key: string, ...members: string[]) => this.#add("sadd", key, ...members);
  /** Does nothing, because the store ends with the hand-out's process. */
  expire = () => this.#add("time");

  exec = async (): Promise<readonly (readonly [null, unknown])[]> => {
    const answers = await this.#redis.askAll(this.#commands);
    return answers.map((answer) => [null, answer] as const);
  };

  #add(...command: StoreCommand): this {
    this.#commands.push(command);
    return this;
  }
}

interface BullOptions {
  readonly connection: LocalRedis;
  readonly prefix: string;
}

/** The common part of BullMQ's classes. */
class LocalBull {
  readonly redis: LocalRedis;
  /** The prefix of the names of the run's jobs. */
  readonly base: string;

  constructor(name: string, { connection, prefix }: BullOptions) {
    this.redis = connection;
    this.base = `${prefix}:${name}`;
  }

  on(_event: string, _listener: Listener): this {
    return this;
  }

  async waitUntilReady(): Promise<void> {
    await this.redis.ask("time");
  }

  async close(): Promise<void> {
    await Promise.resolve();
  }
}

class LocalQueue extends LocalBull {
  toKey(id: string): string {
    return `${this.base}:${id}`;
  }

  async addBulk(jobs: readonly NewJob[]): Promise<void> {
    await this.redis.ask("addJobs", this.base, jobs);
  }

  async remove(id: string): Promise<number> {
    return await this.redis.ask("removeJob", this.base, id);
  }

  async getJob(id: string) {
    const there = await this.redis.ask("hget", this.toKey(id), "name");
    if (there === null) return undefined;
    return {
      changePriority: async ({ priority }: { readonly priority: number }) => {
        await this.redis.ask("changePriority", this.base, id, priority);
      },
    };
  }

  async obliterate(): Promise<void> {
    await this.redis.ask("obliterate", this.base);
  }
}

class LocalQueueEvents extends LocalBull {
  readonly #stops: (() => void)[] = [];

  override on(event: string, listener: Listener): this {
    const stop = this.redis.connection.watch(this.base, (change: JobEvent) => {
      if (change.event !== event) return;
      const about =
        change.event === "completed"
          ? { ...change, returnvalue: JSON.parse(change.returnvalue) as unknown }
          : change;
      (listener as (about: unknown) => void)(about);
    });
    this.#stops.push(stop);
    return this;
  }

  override async close(): Promise<void> {
    for (const stop of this.#stops) stop();
    await Promise.resolve();
  }
}

class LocalWorker extends LocalBull {
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

  async getNextJob(token: string): Promise<LocalJob | undefined> {
    const about = { token, lockMs: this.#lockMs };
    const job = await this.redis.ask<TakenJob | null>("takeJob", this.base, about);
    return job === null ? undefined : new LocalJob(this, job);
  }

  async extendJobLocks(ids: string[], tokens: string[], lockMs: number) {
    return await this.redis.ask("extendLocks", this.base, ids, { tokens, lockMs });
  }

  async startStalledCheckTimer(): Promise<void> {
    await this.redis.ask("returnStalled", this.base, this.#checkMs).catch(() => {});
    if (this.#isClosed) return;
    this.#callOff = this.redis.connection.clock.after(this.#checkMs, () => {
      void this.startStalledCheckTimer();
    });
  }

  override async close(): Promise<void> {
    this.#isClosed = true;
    this.#callOff();
    await Promise.resolve();
  }
}

class LocalJob {
  readonly id: string;
  readonly data: unknown;
  readonly attemptsStarted: number;
  readonly #worker: LocalWorker;

  constructor(worker: LocalWorker, { attemptsStarted, data, id }: TakenJob) {
    this.#worker = worker;
    this.id = id;
    this.attemptsStarted = attemptsStarted;
    this.data = JSON.parse(data);
  }

  async moveToCompleted(value: unknown, token: string): Promise<void> {
    const { base, redis } = this.#worker;
    await redis.ask("completeJob", base, this.id, { token, value });
  }

  async moveToWait(token: string): Promise<void> {
    const { base, redis } = this.#worker;
    await redis.ask("returnJob", base, this.id, token);
  }

  async remove(): Promise<void> {
    const { base, redis } = this.#worker;
    await redis.ask("removeJob", base, this.id);
  }
}

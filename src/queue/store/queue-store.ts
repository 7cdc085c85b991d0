import { systemClock, type Clock } from "../../async/clock.ts";
import { readVariable } from "../../secrets/read-variable.ts";
import type { Redis, RedisOptions } from "ioredis";
import { UsageError, describeError } from "../../errors.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import type { Variables } from "../../composition/create-engine.ts";
import type { QueueConfig } from "../queue-settings.ts";
import { newsChannel, prefix } from "./keys.ts";
import { within } from "./within.ts";
import { parseNews, type News } from "./news.ts";
import { loadStoreClients, type StoreClients } from "./load-client.ts";

/** Options for connecting to a store. */
export interface StoreOptions {
  readonly env?: Variables;
  /** The redactor that also removes the store's password. */
  readonly redactor?: Redactor;
  /** Called when the store becomes unreachable, and when it can be reached again. */
  readonly onContact?: (contact: { readonly isThere: boolean; readonly why?: string }) => void;
  /** The longest time for the first connection, in milliseconds. Default 10 000. */
  readonly connectMs?: number;
  /**
   * The client library. Default: the packages `ioredis` and `bullmq`, which are loaded on demand.
   */
  readonly clients?: StoreClients;
  /** The clock for waits. Default: the machine's. */
  readonly clock?: Clock;
  /** Returns this machine's time in milliseconds since the epoch. Default: `Date.now`. */
  readonly wallNow?: () => number;
}

/** The time without a reply after which a connection counts as dead, in milliseconds. */
const silenceMs = 15_000;

/** The longest time for which a blocking call of this package waits, in milliseconds. Shorter than `silenceMs`. */
export const blockMs = 5_000;

/** The store of a queue: a connection for commands and one for notifications. */
export class QueueStore implements AsyncDisposable {
  readonly redis: Redis;
  readonly bullmq: StoreClients["bullmq"];
  /** The clock for all waits on this store. */
  readonly clock: Clock;
  /** Returns this machine's time in milliseconds since the epoch. */
  readonly wallNow: () => number;
  readonly #subscriber: Redis;
  readonly #listeners = new Set<(news: News) => void>();
  #isThere = true;
  #aheadMs = 0;

  private constructor(clients: StoreClients, redis: Redis, options: StoreOptions) {
    this.redis = redis;
    this.bullmq = clients.bullmq;
    this.clock = options.clock ?? systemClock;
    this.wallNow = options.wallNow ?? Date.now;
    this.#subscriber = redis.duplicate();
    const onContact = (isThere: boolean, why?: string): void => {
      if (isThere === this.#isThere) return;
      this.#isThere = isThere;
      options.onContact?.({ isThere, ...(why !== undefined && { why }) });
    };
    redis.on("error", (error: Error) => onContact(false, describeError(error)));
    redis.on("close", () => onContact(false));
    redis.on("ready", () => onContact(true));
    this.#subscriber.on("error", () => {});
    this.#subscriber.on("message", (_channel, text) => {
      const news = parseNews(text);
      if (news === undefined) return;
      for (const listener of this.#listeners) listener(news);
    });
  }

  /**
   * Connects to a store in the memory of the hand-out's process.
   * @param clients - The clients that use it (see `localClients()`).
   */
  static async over(clients: StoreClients): Promise<QueueStore> {
    const store = new QueueStore(clients, new clients.Redis(), {});
    await Promise.all([store.#subscriber.subscribe(newsChannel), store.readClock()]);
    return store;
  }

  /**
   * Connects to a store.
   * @throws UsageError if its packages are missing, its password is wrong, or it does not answer.
   */
  static async connect(config: QueueConfig, options: StoreOptions = {}): Promise<QueueStore> {
    const clients = options.clients ?? (await loadStoreClients());
    const redis = new clients.Redis(config.url, redisOptions(config, options));
    let last: unknown;
    redis.on("error", (error: unknown) => (last = error));
    const store = new QueueStore(clients, redis, options);
    const { connectMs = 10_000 } = options;
    try {
      // For a database number that does not exist, the client would silently use database 0.
      const database = Number(new URL(config.url).pathname.slice(1));
      const chosen = database > 0 ? redis.select(database) : undefined;
      const subscribed = store.#subscriber.subscribe(newsChannel);
      const begun = Promise.all([chosen, store.readClock(), subscribed]);
      begun.catch(() => {});
      if (!(await within(connectMs, begun, store.clock)))
        throw last ?? new Error("it does not answer");
    } catch (error) {
      await store[Symbol.asyncDispose]();
      const { protocol, host } = new URL(config.url);
      const description = describeError(last ?? error);
      const why = description.startsWith("NOAUTH")
        ? "NOAUTH, it wants a password: name the variable that holds it in --queue-password-env"
        : description;
      throw new UsageError(`Cannot reach the queue's store ${protocol}//${host}: ${why}`);
    }
    return store;
  }

  /**
   * Returns the store's time in milliseconds since the epoch, which is the same for all processes.
   * Uses the offset from the last `readClock()`.
   */
  now(): number {
    return this.wallNow() + this.#aheadMs;
  }

  /** Measures the difference between the store's clock and this machine's. */
  async readClock(): Promise<void> {
    const askedAtMs = this.wallNow();
    const [seconds, microseconds] = await this.redis.time();
    const heardAtMs = this.wallNow();
    const thereMs = Number(seconds) * 1_000 + Number(microseconds) / 1_000;
    this.#aheadMs = thereMs - (askedAtMs + heardAtMs) / 2;
  }

  /** Calls the listener with each notification. Returns a function that removes the listener. */
  listen(listener: (news: News) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async publish(news: News): Promise<void> {
    await this.redis.publish(newsChannel, JSON.stringify(news));
  }

  /** The options with which to construct BullMQ's classes. */
  get bullOptions(): { readonly connection: Redis; readonly prefix: string } {
    return { connection: this.redis, prefix };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#listeners.clear();
    this.redis.removeAllListeners("close");
    this.#subscriber.disconnect();
    this.redis.disconnect();
  }
}

function redisOptions(config: QueueConfig, { env = process.env, redactor }: StoreOptions) {
  const { url, passwordEnv } = config;
  const password = readVariable(env, passwordEnv, "--queue-password-env");
  if (password !== undefined) redactor?.learn(password);
  return {
    // Unanswered commands are sent again on the next connection. All of our commands can be
    // repeated.
    maxRetriesPerRequest: null,
    enableReadyCheck: true,
    socketTimeout: silenceMs,
    retryStrategy: (times) => Math.min(100 * 2 ** Math.min(times, 6), 2_000),
    // A server that has become a replica refuses every write on this connection, so the client
    // reconnects. Other refusals pass by themselves.
    reconnectOnError: (error) => error.message.startsWith("READONLY"),
    ...(password !== undefined && { password }),
    ...(url.startsWith("rediss:") && { tls: {} }),
  } satisfies RedisOptions;
}

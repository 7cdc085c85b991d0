import type { Clock } from "../../async/clock.ts";
import type { JobEvent, LocalStore } from "./local-store.ts";

/** The methods of a `LocalStore` that a connection can call. */
const commandNames = [
  "time",
  "get",
  "mget",
  "exists",
  "set",
  "hold",
  "leave",
  "takeOut",
  "del",
  "hset",
  "hget",
  "hmget",
  "hgetall",
  "hexists",
  "hdel",
  "sadd",
  "srem",
  "smismember",
  "publish",
  "addJobs",
  "removeJob",
  "changePriority",
  "takeJob",
  "extendLocks",
  "completeJob",
  "returnJob",
  "returnStalled",
  "obliterate",
] as const satisfies readonly (keyof LocalStore)[];

type CommandName = (typeof commandNames)[number];

/** A command for the store: the name of a method, and its arguments. JSON-able. */
export type StoreCommand = readonly [name: CommandName, ...given: readonly unknown[]];

/** A connection of one process to a `LocalStore`. */
export interface StoreConnection {
  readonly clock: Clock;
  /** Performs commands as one atomic step. Resolves with their answers. */
  perform(commands: readonly StoreCommand[]): Promise<readonly unknown[]>;
  /** Calls the listener with each notification. Returns a function that removes the listener. */
  subscribe(listener: (channel: string, text: string) => void): () => void;
  /** Calls the watcher with each change of a run's jobs. Returns a function that removes the watcher. */
  watch(base: string, watcher: (event: JobEvent) => void): () => void;
  /** Calls the listener when the store becomes unreachable, and when it can be reached again. */
  onContact?(listener: (isThere: boolean) => void): void;
  /** Closes the connection. Later commands are not performed. */
  close(): void;
}

/** Performs a command in the process of the store. */
export function performCommand(store: LocalStore, [name, ...given]: StoreCommand): unknown {
  if (!commandNames.includes(name)) throw new TypeError(`${name} is not a command`);
  return Reflect.apply(store[name] as (...given: unknown[]) => unknown, store, given);
}

/** Connects to a store in this process. */
export function connectHere(store: LocalStore, clock: Clock): StoreConnection {
  return {
    clock,
    perform: (commands) =>
      Promise.resolve().then(() => commands.map((command) => performCommand(store, command))),
    subscribe: (listener) => store.subscribe(listener),
    watch: (base, watcher) => store.watch(base, watcher),
    close: () => {},
  };
}

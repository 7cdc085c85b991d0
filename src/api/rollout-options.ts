import type { Agent } from "../agent/agent.ts";
import type { Engine } from "../engine/engine.ts";
import type { ForeignAgent } from "../gateway/agent/foreign-agent.ts";
import { UsageError } from "../errors.ts";
import type { Environment } from "../environment/environment.ts";
import type { Episode } from "../episode/episode.ts";
import type { Clock } from "../async/clock.ts";
import type { Renderer } from "../renderer/renderer.ts";
import type { RunProgress } from "../run/run-progress.ts";
import type { RunSettings } from "../composition/config/run-config.ts";
import type { GivenSettings } from "../composition/config/setting.ts";
import type { Sample } from "../trajectory/sample.ts";
import type { User } from "../user/user.ts";

/** `max-turns` as `maxTurns`. */
export type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** Settings that take more in the library than in a file. */
export type Widened = "environment" | "engine" | "user" | "agent" | "tasks" | "url";

/** The settings of a configuration file, spelled as there or in camel case; all may be left out. */
export type LibrarySettings = {
  readonly [Name in Exclude<keyof RunSettings, Widened>]?: RunSettings[Name] | undefined;
} & {
  readonly [Name in Exclude<keyof RunSettings, Widened> as CamelCase<Name>]?:
    | RunSettings[Name]
    | undefined;
};

/** What is played, with whom and how. Whatever is left out is as on the command line. */
export interface RolloutOptions extends LibrarySettings {
  /** An environment; or its name, or a module's path, as `env`. */
  readonly environment?: Environment | string;
  /** An engine, which stays open; or an engine's name, with `url` and the like. */
  readonly engine?: Engine | RunSettings["engine"];
  /** The server's address, or several workers'. */
  readonly url?: string | readonly string[];
  /** In the place of what `model` describes. */
  readonly renderer?: Renderer;
  /** A user; or a strategy's name. Default: the environment's own, else one who states the task. */
  readonly user?: User | RunSettings["user"];
  /**
   * An agent; or one that keeps its conversations itself, such as `{ run }`; or a strategy's name, or a
   * module's path.
   */
  readonly agent?: Agent | ForeignAgent | RunSettings["agent"];
  /**
   * The Valkey or Redis by which attempts are handed out to workers: `redis://host:6379`. Whoever plays is
   * then given by names and paths, as on the command line, since objects do not travel; and `out` is needed.
   */
  readonly queue?: string;
  /** The variable that holds the password to the queue's store. */
  readonly queuePasswordEnv?: string;
  /** Where results above 100 kB travel: a folder that all reach, or `s3://bucket/prefix`. */
  readonly shared?: string;
  /** Told, for people, what goes on with the queue. What it throws or rejects with is thrown when all is closed. */
  readonly onQueue?: (text: string) => void;
  /** Indexes, or as the command line spells them, such as `0-31,40`. Default: all of the split. */
  readonly tasks?: string | readonly number[];
  /** Stops it: what is played then is given up. */
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: RunProgress) => void;
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number;
  /** In which deadlines are kept. Default: the machine's. */
  readonly clock?: Clock;
}

/** An episode with its training rows. */
export interface RolloutEpisode {
  readonly episode: Episode;
  readonly samples: readonly Sample[];
}

/** All attempts at one task. */
export interface RolloutGroup {
  /** The task's id. */
  readonly groupId: string;
  /** In the order of their places in the group. */
  readonly episodes: readonly RolloutEpisode[];
}

const objectKeys = new Set([
  "environment",
  "engine",
  "renderer",
  "user",
  "agent",
  "tasks",
  "url",
  "signal",
  "onProgress",
  "now",
  "clock",
  "group",
  "queue",
  "queuePasswordEnv",
  "shared",
  "onQueue",
]);

/**
 * The settings among the options, by the names that a configuration file has.
 *
 * @throws UsageError for a part that is neither an object nor a text: left out, another would play in its place.
 */
export function settingsOf(options: RolloutOptions): GivenSettings {
  const settings: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(options)) {
    if (objectKeys.has(key) || value === undefined) continue;
    settings[key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)] = value;
  }
  const { environment, engine, user, agent, tasks, url } = options;
  for (const [name, part] of Object.entries({ environment, engine, user, agent }) as [
    string,
    unknown,
  ][]) {
    if (part === undefined || typeof part === "string") continue;
    if (typeof part === "object" && part !== null) continue;
    const found = part === null ? "null" : `a ${typeof part}`;
    throw new UsageError(`Cannot use ${name}: it is ${found}, expected an object or a name`);
  }
  if (typeof environment === "string") settings["env"] = environment;
  for (const [name, value] of Object.entries({ engine, user, agent })) {
    if (typeof value === "string") settings[name] = value;
  }
  if (typeof tasks === "string") settings["tasks"] = tasks;
  else if (tasks !== undefined) settings["tasks"] = tasks.join(",");
  if (url !== undefined) settings["url"] = typeof url === "string" ? [url] : url;
  return settings;
}

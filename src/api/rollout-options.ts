import type { Agent } from "../agent/agent.ts";
import type { Engine } from "../engine/engine.ts";
import type { ForeignAgent } from "../gateway/agent/foreign-agent.ts";
import { UsageError } from "../errors.ts";
import type { Environment } from "../environment/environment.ts";
import type { Episode } from "../episode/episode.ts";
import type { Clock } from "../async/clock.ts";
import type { Renderer } from "../renderer/renderer.ts";
import type { StalenessOptions } from "../run/policy/staleness.ts";
import type { RunProgress } from "../run/run-progress.ts";
import type { AdvantageEstimator } from "../run/schedule/advantages.ts";
import type { EpisodeGroup } from "../run/schedule/group.ts";
import type { TaskSource } from "../run/schedule/task-source.ts";
import type { TurnAdvantageOptions } from "../run/schedule/turn-advantages.ts";
import type { AdmissionOptions, GroupingOptions } from "../run/start-run-options.ts";
import type { RunSettings } from "../composition/config/run-config.ts";
import type { GivenSettings, SettingValues } from "../composition/config/setting.ts";
import { teacherSettings } from "../composition/config/teacher-config.ts";
import type { EpisodesScored } from "../composition/open-episode-teacher.ts";
import type { Sample } from "../trajectory/sample.ts";
import type { User } from "../user/user.ts";

/** A setting's name in camel case: `maxTurns` for `max-turns`. */
export type CamelCase<Name extends string> = Name extends `${infer Head}-${infer Tail}`
  ? `${Head}${Capitalize<CamelCase<Tail>>}`
  : Name;

/** The settings that accept other types in the library than in a configuration file. */
export type Widened = "environment" | "engine" | "user" | "agent" | "tasks" | "url";

/** The settings of a configuration file, in kebab case or camel case. All are optional. */
export type LibrarySettings = {
  readonly [Name in Exclude<keyof RunSettings, Widened>]?: RunSettings[Name] | undefined;
} & {
  readonly [Name in Exclude<keyof RunSettings, Widened> as CamelCase<Name>]?:
    | RunSettings[Name]
    | undefined;
};

/** The values of a teacher's settings by name. */
export type TeacherValues = Omit<SettingValues<(typeof teacherSettings)[number]>, "teacher">;

/** The settings of a teacher, in kebab case or camel case. */
export type TeacherLibrarySettings = {
  readonly [Name in keyof TeacherValues]?: TeacherValues[Name] | undefined;
} & {
  readonly [Name in keyof TeacherValues as CamelCase<Name>]?: TeacherValues[Name] | undefined;
};

/** The settings and parts of a rollout. Defaults are those of the command line. */
export interface RolloutOptions extends LibrarySettings, TeacherLibrarySettings {
  /** An environment, its name, or the path of a module; `env` on the command line. */
  readonly environment?: Environment | string;
  /** An engine, which stays open, or the name of an engine, used with `url` and similar settings. */
  readonly engine?: Engine | RunSettings["engine"];
  /** The server's address, or the addresses of several workers. */
  readonly url?: string | readonly string[];
  /** A renderer, in place of the one that `model` describes. */
  readonly renderer?: Renderer;
  /**
   * A user, or the name of a strategy. Default: the environment's user, otherwise one that states
   * the task.
   */
  readonly user?: User | RunSettings["user"];
  /**
   * An agent, an agent that manages its own conversations such as `{ run }`, the name of a strategy, or the path of a
   * module.
   */
  readonly agent?: Agent | ForeignAgent | RunSettings["agent"];
  /**
   * A teacher that scores the rows as episodes end: an engine, which stays open, or the addresses of a server. The other
   * settings are those of `turnwright rollout`, such as `teacherTop`. Requires `out`. The rollout ends when the last row
   * is scored.
   */
  readonly teacher?: Engine | string | readonly string[];
  /** Receives the teacher's counts at the end. A failure of the teacher is no failure of the rollout: see `failure`. */
  readonly onTeacher?: (scored: EpisodesScored) => void;
  /**
   * Task indexes, or a text as on the command line, such as `0-31,40`. Default: all tasks of the
   * split.
   */
  readonly tasks?: string | readonly number[];
  /**
   * The tasks to play, in place of `split`, `tasks`, `epochs` and `groups`: a source, such as `createEndlessTasks()` or
   * `createPushedTasks()` returns, or a function that makes a source from the environment.
   */
  readonly source?: TaskSource | ((environment: Environment) => TaskSource);
  /** Over-sampling, and a filter for the groups to yield. `samples` is the size of a group. */
  readonly grouping?: Pick<GroupingOptions, "started" | "keep">;
  /**
   * Limits besides `concurrency`: the number of groups that may wait for you, and a gate that
   * several runs can share.
   */
  readonly admission?: Omit<AdmissionOptions, "concurrency">;
  /**
   * The highest age of tokens, in policy versions, before they are masked or dropped. Default: any
   * age.
   */
  readonly staleness?: StalenessOptions;
  /**
   * With `out`: true to yield groups again that ended in earlier starts and that your loop did not
   * take. Default false.
   */
  readonly redeliver?: boolean;
  /**
   * Gives each group advantages of its turns: `group.turnAdvantages`, as `turnAdvantages()` computes them. `estimator` is
   * `grpo` by default. Default: none.
   */
  readonly turnAdvantages?: TurnAdvantageOptions & { readonly estimator?: AdvantageEstimator };
  /**
   * The number of worker processes on this machine that play the episodes, or `auto` for one for each available core.
   * Parts must be names and paths then, as on the command line. Requires `out`. Default: this process plays.
   */
  readonly workers?: number | "auto";
  /**
   * The Valkey or Redis through which workers receive attempts: `redis://host:6379`. Parts must be names and paths
   * then, as on the command line, because objects cannot travel to workers. Requires `out`.
   */
  readonly queue?: string;
  /** The name of the environment variable with the password of the queue's store. */
  readonly queuePasswordEnv?: string;
  /** The place for results above 100 kB: a folder that all workers reach, or `s3://bucket/prefix`. */
  readonly shared?: string;
  /** Receives messages about the queue or the worker processes, for people. An error that it throws is rethrown at the end of the run. */
  readonly onQueue?: (text: string) => void;
  /** Stops the run when it aborts. Episodes that are being played are cancelled. */
  readonly signal?: AbortSignal;
  /** Called when an episode starts or ends. An error that it throws ends the run. */
  readonly onProgress?: (progress: RunProgress) => void;
  /** Called for each finished episode, after it is on the disk. An error that it throws ends the run. */
  readonly onEpisode?: (episode: Episode) => void;
  /** The current time in milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number;
  /** The clock for deadlines. Default: the machine's clock. */
  readonly clock?: Clock;
}

/** An episode with its training rows. */
export interface RolloutEpisode extends Episode {
  readonly samples: readonly Sample[];
}

/** All attempts at one task, each with its training rows. */
export interface RolloutGroup extends EpisodeGroup {
  /** The attempts, by their place within the group; an attempt that failed has no reward. */
  readonly episodes: readonly RolloutEpisode[];
  /**
   * With the option `turnAdvantages`: the advantages of each attempt's turns, or `undefined` for an attempt that has
   * none. See `turnAdvantages()`.
   */
  readonly turnAdvantages?: readonly (readonly number[] | undefined)[];
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
  "workers",
  "queue",
  "queuePasswordEnv",
  "shared",
  "onQueue",
  "source",
  "grouping",
  "admission",
  "staleness",
  "redeliver",
  "turnAdvantages",
  "onEpisode",
  "onTeacher",
]);

/** The names of a teacher's settings in a configuration file. */
const teacherNames: ReadonlySet<string> = new Set(teacherSettings.map(({ name }) => name));

function toSettingName(key: string): string {
  return key.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

/** Returns the settings of a teacher among the options, by their names in a configuration file. */
export function teacherSettingsOf(options: RolloutOptions): GivenSettings {
  const given = Object.entries(options).flatMap(([key, value]) => {
    const name = toSettingName(key);
    return teacherNames.has(name) && name !== "teacher" && value !== undefined
      ? [[name, value] as const]
      : [];
  });
  const { teacher } = options;
  const urls = typeof teacher === "string" ? [teacher] : teacher;
  return {
    ...Object.fromEntries(given),
    ...(Array.isArray(urls) && { teacher: urls as readonly string[] }),
  };
}

/**
 * Returns the settings among the options, by their names in a configuration file.
 *
 * @throws UsageError if `environment`, `engine`, `user` or `agent` is neither an object nor a name.
 */
export function settingsOf(options: RolloutOptions): GivenSettings {
  const settings: Record<string, unknown> = {};
  for (const [key, value] of Object.entries(options)) {
    const name = toSettingName(key);
    if (objectKeys.has(key) || teacherNames.has(name) || value === undefined) continue;
    settings[name] = value;
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

import { isObject } from "../../values/is-object.ts";
import path from "node:path";
import type { EpisodeLimits } from "../../episode/limits.ts";
import type { Files } from "../disk/files.ts";
import { writeJsonAtomically } from "../disk/write-atomically.ts";
import { readPromptTime } from "../prompt-time.ts";

/** The content of `run.json`: the facts that decide what the run plays. JSON-able. */
export interface RunManifest {
  readonly format: 1;
  readonly turnwright: string;
  /** A random id, drawn when the folder is created. Recordings name it. Absent in a manifest without a folder. */
  readonly runId?: string;
  /**
   * The date and time that chat templates print as the current time, in all prompts of the run: the local time at which
   * the run started, without a zone, such as `2026-11-23T10:05:00.000`. Absent in a manifest without a folder.
   */
  readonly promptTime?: string;
  /** The settings that the caller chose. Two runs with different settings cannot share a folder. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /**
   * Hashes or names of what decides tokens and rewards: tokenizer, chat template, tools, data, engine and so on. Two
   * runs with different values cannot share a folder. Absent if a program started the run and gave none.
   */
  readonly identity?: Readonly<Record<string, string>>;
  /**
   * Other facts that were found at start-up. They may change from start to start. `startRun()` adds the members that
   * `verify` and exports need, if they are missing: the vocabulary's size, and a `plan` without episodes. Until a token
   * is sampled, it also writes the sampling of `setup` (`sampling`, and for greedy sampling the engine's
   * `logprobConvention`).
   */
  readonly found: Readonly<Record<string, unknown>>;
}

/** The manifest of a run's folder. */
export type FolderManifest = RunManifest & Required<Pick<RunManifest, "runId" | "promptTime">>;

/** The folder of a run. */
export interface RunPlace {
  /** The folder's absolute path. */
  readonly dir: string;
  /** The folder's name as the caller gave it, for messages. */
  readonly name: string;
}

/** The file of a run's manifest. */
export const manifestFile = "run.json";

/** The run's context limit in `identity`, and the setting that replaces the engine's limit. */
export const contextMember = "max-context";

/** Returns the limits of this start. A context limit that this start does not have comes from earlier starts. */
export function withRecordedContext<Limits extends Pick<EpisodeLimits, "maxContextTokens">>(
  limits: Limits,
  { identity }: Pick<RunManifest, "identity">,
): Limits {
  const recorded = Number(identity?.[contextMember]);
  const isGiven = Number.isFinite(limits.maxContextTokens);
  return isGiven || !(recorded >= 1) ? limits : { ...limits, maxContextTokens: recorded };
}

/** Writes `run.json`. Call it while the folder is locked. */
export async function writeManifest(
  dir: string,
  manifest: RunManifest,
  { files }: { readonly files: Files },
): Promise<void> {
  await writeJsonAtomically(path.join(dir, manifestFile), manifest, { files });
}

/** True if a later start can read the value as a manifest. */
export function isManifest(value: Partial<RunManifest> | null | undefined): value is RunManifest {
  return unreadableParts(value ?? {}).length === 0;
}

/** Returns the members that a later start could not read, with the expected value of each. */
export function unreadableParts({
  format,
  turnwright,
  configuration,
  identity = {},
  promptTime,
}: Partial<RunManifest>): readonly {
  readonly name: keyof RunManifest;
  readonly expected: string;
}[] {
  const isDated = promptTime === undefined || readPromptTime(promptTime) !== undefined;
  const moment = "a moment without a zone, such as 2026-11-23T10:05:00.000";
  return [
    ...(format === 1 ? [] : [{ name: "format", expected: "1" } as const]),
    ...(typeof turnwright === "string"
      ? []
      : [{ name: "turnwright", expected: "a text" } as const]),
    ...(isDated ? [] : [{ name: "promptTime", expected: moment } as const]),
    ...(isObject(configuration) ? [] : [{ name: "configuration", expected: "an object" } as const]),
    ...(isObject(identity) ? [] : [{ name: "identity", expected: "an object" } as const]),
  ];
}

import { randomUUID } from "node:crypto";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { EpisodeLimits } from "../../episode/limits.ts";
import { UsageError } from "../../errors.ts";
import { parseJson } from "./episode-row.ts";
import { type Files, readText } from "../disk/files.ts";
import { holdsSampled } from "./folder-journals.ts";
import { readPromptTime, toPromptTime } from "../prompt-time.ts";
import { scanLines } from "../disk/line-ranges.ts";
import { recordingFile } from "../recording/recording-line.ts";
import { storageError } from "../disk/storage-error.ts";
import { isRow } from "../../trajectory/violation.ts";
import { writeJsonAtomically } from "../disk/write-atomically.ts";

/** The content of `run.json`: everything that decides what the run plays. JSON-able. */
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
  /** The settings that the caller chose. Two runs with different ones cannot share a folder. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /**
   * Hashes or names of what decides tokens and rewards: tokenizer, chat template, tools, data, engine and so on. Two
   * runs with different ones cannot share a folder. Absent if a program started the run and named none.
   */
  readonly identity?: Readonly<Record<string, string>>;
  /**
   * Other facts that were found at start-up. They may change from start to start. `startRun()` adds the members that
   * `verify` and exports need, if they are missing: the vocabulary's size, and a `plan` without episodes. Until
   * something is sampled, it also writes how `setup` samples (`sampling`, and for greedy sampling the engine's
   * `logprobConvention`).
   */
  readonly found: Readonly<Record<string, unknown>>;
}

/** The manifest of a run's folder. */
export type FolderManifest = RunManifest & Required<Pick<RunManifest, "runId" | "promptTime">>;

/** The manifest of a folder, with notes for the user. */
interface ClaimedManifest {
  readonly manifest: FolderManifest;
  readonly notes: readonly string[];
}

/** The folder of a run. */
export interface RunPlace {
  /** The folder's absolute path. */
  readonly dir: string;
  /** The folder's name as the caller gave it, for messages. */
  readonly name: string;
}

const fileName = "run.json";

/** The run's context limit in `identity`, and the setting that replaces the engine's limit. */
export const contextMember = "max-context";

/** Members of `identity` that an engine may not report at each start. A missing value is no difference. */
const toldByEngine: ReadonlySet<string> = new Set([
  contextMember,
  "logprobConvention",
  "weightsFile",
  "servedModel",
]);

/**
 * Makes a folder the folder of this run: writes `run.json` in a new folder, or compares the existing one. If `run.json`
 * is missing or damaged, the manifest of the last start in `events.jsonl` replaces it.
 *
 * @throws UsageError if the folder holds another run (the message names the difference), if it cannot be used, or if no
 *   later start could read the manifest.
 */
export async function claimManifest(
  { dir, name }: RunPlace,
  asked: RunManifest,
  {
    files,
    drawId = randomUUID,
    now = Date.now,
  }: {
    readonly files: Files;
    readonly drawId?: () => string;
    readonly now?: (() => number) | undefined;
  },
): Promise<ClaimedManifest> {
  requireReadable(name, asked);
  const file = path.join(dir, fileName);
  const { promptTime = toPromptTime(new Date(now())) } = asked;
  const manifest = { ...asked, runId: drawId(), promptTime };
  const stored = await readStored(files, file);
  if (typeof stored === "object") {
    try {
      return await resume({ dir, name }, { stored, manifest, files });
    } catch (error) {
      // The earlier start sampled nothing, so the folder can be used with corrected settings.
      if (await holdsSampled(files, dir)) throw error;
      await dropRecording(files, dir);
      await writeJsonAtomically(file, manifest, { files });
      return { manifest, notes: [] };
    }
  }
  const told = await readLastStart(files, dir);
  if (!(await holdsSampled(files, dir))) {
    // Keeps the run id under which the tasks of started groups were recorded.
    const before = told !== undefined && isAlike(told, manifest) ? told : undefined;
    if (before === undefined) await dropRecording(files, dir);
    const { runId = manifest.runId, promptTime: first = promptTime } = before ?? {};
    const begun = { ...manifest, runId, promptTime: first };
    await writeJsonAtomically(file, begun, { files });
    return { manifest: begun, notes: [] };
  }
  if (told === undefined) throw cannotRecover(name, stored);
  const { identity, turnwright, configuration } = told;
  const { runId = manifest.runId, promptTime: first = promptTime } = told;
  const recovered = { ...manifest, turnwright, configuration, runId, promptTime: first };
  const known = identity === undefined ? recovered : { ...recovered, identity };
  const resumed = await resume({ dir, name }, { stored: known, manifest, files });
  await writeJsonAtomically(file, resumed.manifest, { files });
  const note = `${file} was ${stored} and is written anew: events.jsonl says what was played`;
  return { ...resumed, notes: [note, ...resumed.notes] };
}

/** Returns the limits of this start, with the context limit of earlier starts if this one has none. */
export function withRecordedContext<Limits extends Pick<EpisodeLimits, "maxContextTokens">>(
  limits: Limits,
  { identity }: Pick<RunManifest, "identity">,
): Limits {
  const noted = Number(identity?.[contextMember]);
  const isTold = Number.isFinite(limits.maxContextTokens);
  return isTold || !(noted >= 1) ? limits : { ...limits, maxContextTokens: noted };
}

/** Writes `run.json`. Call it while the folder is locked. */
export async function writeManifest(
  dir: string,
  manifest: RunManifest,
  { files }: { readonly files: Files },
): Promise<void> {
  await writeJsonAtomically(path.join(dir, fileName), manifest, { files });
}

async function readStored(
  files: Files,
  file: string,
): Promise<RunManifest | "missing" | "damaged"> {
  let text: string | undefined;
  try {
    text = await readText(files, file);
  } catch (error) {
    throw storageError("read", file, error);
  }
  if (text === undefined) return "missing";
  const value = parseJson(Buffer.from(text)) as Partial<RunManifest> | null | undefined;
  if (isManifest(value)) return value;
  const format: unknown = value?.format;
  if (typeof format !== "number" || format === 1) return "damaged";
  throw new UsageError(
    `Cannot read ${file}: it is a run of another version (format ${format}); choose another --out`,
  );
}

function isManifest(value: Partial<RunManifest> | null | undefined): value is RunManifest {
  return unreadableParts(value ?? {}).length === 0;
}

/** Returns the members that no start could read, with the expected value of each. */
function unreadableParts({
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
    ...(isRow(configuration) ? [] : [{ name: "configuration", expected: "an object" } as const]),
    ...(isRow(identity) ? [] : [{ name: "identity", expected: "an object" } as const]),
  ];
}

/** Checks that a later start can read a program's manifest. */
function requireReadable(name: string, asked: RunManifest): void {
  const [part] = unreadableParts(asked);
  if (part === undefined) return;
  const value = JSON.stringify(asked[part.name]);
  throw new UsageError(
    `Cannot open ${name}: ${part.name} of its manifest is ${value}, expected ${part.expected}`,
  );
}

/** Removes a recording without samples: it was started by another run. */
async function dropRecording(files: Files, dir: string): Promise<void> {
  const file = path.join(dir, recordingFile);
  try {
    await files.remove(file);
  } catch (error) {
    throw storageError("write", file, error);
  }
}

/** Returns the manifest that the last start wrote to `events.jsonl`. */
async function readLastStart(files: Files, dir: string): Promise<RunManifest | undefined> {
  const file = path.join(dir, "events.jsonl");
  let last: RunManifest | undefined;
  try {
    await scanLines(files, file, ({ bytes }) => {
      if (!bytes.includes('"run-started"')) return;
      const event = parseJson(bytes) as
        | {
            readonly type?: unknown;
            readonly manifest?: Partial<RunManifest>;
          }
        | null
        | undefined;
      if (event?.type !== "run-started") return;
      if (isManifest(event.manifest)) last = event.manifest;
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  return last;
}

function cannotRecover(name: string, state: "missing" | "damaged"): UsageError {
  return new UsageError(
    `Cannot resume ${name}: its ${fileName} is ${state}, and events.jsonl does not say what was played; ` +
      "put a copy of it back, or start the same command with another --out and copy the run.json that " +
      "it writes, if these are surely the same settings",
  );
}

async function resume(
  { dir, name }: RunPlace,
  run: {
    readonly stored: RunManifest;
    readonly manifest: FolderManifest;
    readonly files: Files;
  },
): Promise<ClaimedManifest> {
  const { stored, manifest, files } = run;
  const asked = askedDifferences(stored, manifest);
  if (asked.length > 0) {
    throw new UsageError(
      `Cannot resume ${name}: ${listed(asked)}; start with the same settings or choose another --out`,
    );
  }
  const { identity } = manifest;
  if (identity !== undefined && stored.identity !== undefined) {
    requireSame(name, { stored, manifest }, differences(stored.identity, identity));
  }
  const known = completeIdentity(stored.identity, identity);
  if (known === stored.identity && isOfFolder(stored)) return { manifest: stored, notes: [] };
  const completed = { ...manifest, ...stored, ...(known && { identity: known }) };
  await writeJsonAtomically(path.join(dir, fileName), completed, { files });
  return { manifest: completed, notes: [] };
}

function isOfFolder(manifest: RunManifest): manifest is FolderManifest {
  return manifest.runId !== undefined && manifest.promptTime !== undefined;
}

/** Adds the members that earlier starts did not find, because the engine did not report them. */
function completeIdentity(
  before: RunManifest["identity"],
  now: RunManifest["identity"],
): RunManifest["identity"] {
  if (before === undefined || now === undefined) return before ?? now;
  const late = Object.entries(now).filter(([name]) => !Object.hasOwn(before, name));
  return late.length === 0 ? before : { ...before, ...Object.fromEntries(late) };
}

/** True if both manifests have the same configuration and identity. */
function isAlike(before: RunManifest, now: RunManifest): boolean {
  const asked = differences(before.configuration, now.configuration);
  const found = differences(before.identity ?? {}, now.identity ?? {});
  return asked.length === 0 && found.length === 0;
}

function requireSame(
  name: string,
  { stored, manifest }: { readonly stored: RunManifest; readonly manifest: RunManifest },
  differing: readonly Difference[],
): void {
  const isOneVersion = stored.turnwright === manifest.turnwright;
  const found = differing.filter(
    (each) => each.isNamedByBoth || (isOneVersion && !toldByEngine.has(each.name)),
  );
  if (found.length === 0) return;
  const limit = canTakeLimit(stored, manifest)
    ? `, give --${contextMember} ${stored.identity?.[contextMember]}`
    : "";
  throw new UsageError(
    `Cannot resume ${name}: what its episodes were played with has changed: ${listed(found)}; ` +
      `bring back what was there${limit} or choose another --out`,
  );
}

/** True if a setting can restore the earlier context limit. An engine with a shorter context cannot. */
function canTakeLimit({ identity: before }: RunManifest, now: RunManifest): boolean {
  const [was, is] = [Number(before?.[contextMember]), Number(now.identity?.[contextMember])];
  const isAsked = now.configuration[contextMember] !== undefined;
  return is > was || (isAsked && is < was);
}

/**
 * Returns the differences between two configurations. If one start was given the context limit and the other found it,
 * the found limits are compared as part of the identity instead.
 */
function askedDifferences(stored: RunManifest, manifest: RunManifest): readonly Difference[] {
  const isFound = [stored, manifest].every(({ identity }) => identity?.[contextMember]);
  return differences(stored.configuration, manifest.configuration).filter(
    ({ name, isNamedByBoth }) => isNamedByBoth || name !== contextMember || !isFound,
  );
}

interface Difference {
  readonly name: string;
  /** The difference in words, such as `temperature was 1 and is 0.5`. */
  readonly text: string;
  /** False if only one of the starts has the member; another version of this package may have more or fewer. */
  readonly isNamedByBoth: boolean;
}

function differences(
  before: Readonly<Record<string, unknown>>,
  now: Readonly<Record<string, unknown>>,
): readonly Difference[] {
  const [was, is] = [new Map(Object.entries(before)), new Map(Object.entries(now))];
  const keys = [...new Set([...was.keys(), ...is.keys()])];
  return keys
    .filter((key) => !isDeepStrictEqual(plain(was.get(key)), plain(is.get(key))))
    .map((key) => ({
      name: key,
      text: `${key} was ${JSON.stringify(was.get(key))} and is ${JSON.stringify(is.get(key))}`,
      isNamedByBoth: was.get(key) !== undefined && is.get(key) !== undefined,
    }));
}

function listed(found: readonly Difference[]): string {
  return found.map(({ text }) => text).join("; ");
}

function plain(value: unknown): unknown {
  return value === undefined ? undefined : (JSON.parse(JSON.stringify(value)) as unknown);
}

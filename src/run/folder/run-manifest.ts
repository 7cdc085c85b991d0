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

/** What `run.json` says: everything that decides what the run plays. JSON-able. */
export interface RunManifest {
  readonly format: 1;
  readonly turnwright: string;
  /** Drawn when the folder is created. Recordings name it. Absent in a manifest that has no folder yet. */
  readonly runId?: string;
  /**
   * What chat templates that print the date take for today in all of the run's prompts, whoever renders them and
   * when: the moment at which it began, as the clock on the wall showed it there, such as
   * `2026-11-23T10:05:00.000`: without a zone (`toISOString()` ends in one). Absent in a manifest that has no
   * folder yet.
   */
  readonly promptTime?: string;
  /** What was asked for. Two runs with different ones cannot share a folder. */
  readonly configuration: Readonly<Record<string, unknown>>;
  /**
   * Hashes or names of what was found and decides tokens and rewards: tokenizer, chat template, tools,
   * data, engine and so on. Two runs with different ones cannot share a folder either. Absent if
   * a program started the run and named none.
   */
  readonly identity?: Readonly<Record<string, string>>;
  /**
   * What else was found at start-up; it may change from start to start. `startRun()` adds what `verify` and exports
   * ask for where it is left out: the vocabulary's size, and a `plan` that leaves open which episodes there will be.
   * Until something is sampled it notes how `setup` draws tokens, whatever stands there (`sampling`; where that is
   * greedy, also the engine's `logprobConvention`).
   */
  readonly found: Readonly<Record<string, unknown>>;
}

/** The manifest of a run's folder. */
export type FolderManifest = RunManifest & Required<Pick<RunManifest, "runId" | "promptTime">>;

/** The manifest that holds for a folder, and what there is to tell about it. */
interface ClaimedManifest {
  readonly manifest: FolderManifest;
  readonly notes: readonly string[];
}

/** Where a run is written. */
export interface RunPlace {
  /** The folder's absolute path. */
  readonly dir: string;
  /** The folder as it was named, for messages. */
  readonly name: string;
}

const fileName = "run.json";

/** The member of `identity` that is a run's context limit, and the setting that takes an engine's place in it. */
export const contextMember = "max-context";

/** Members of `identity` that an engine does not tell at each start: where it did not, nothing differs. */
const toldByEngine: ReadonlySet<string> = new Set([
  contextMember,
  "logprobConvention",
  "weightsFile",
  "servedModel",
]);

/**
 * Makes a folder that of a run: writes `run.json` where the folder is new, and compares it where there
 * is one. Where it is missing or damaged, what `events.jsonl` says of the last start takes its place.
 *
 * @throws UsageError where the folder holds another run, naming what differs, or cannot be used, and for a
 *   manifest that no later start could read.
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
      // A start that got no further is no run: whoever mends its settings need not find another folder.
      if (await holdsSampled(files, dir)) throw error;
      await dropRecording(files, dir);
      await writeJsonAtomically(file, manifest, { files });
      return { manifest, notes: [] };
    }
  }
  const told = await readLastStart(files, dir);
  if (!(await holdsSampled(files, dir))) {
    // The tasks that were begun name the run.
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

/** Where this start was told no context limit, that of the starts before is played within. */
export function withRecordedContext<Limits extends Pick<EpisodeLimits, "maxContextTokens">>(
  limits: Limits,
  { identity }: Pick<RunManifest, "identity">,
): Limits {
  const noted = Number(identity?.[contextMember]);
  const isTold = Number.isFinite(limits.maxContextTokens);
  return isTold || !(noted >= 1) ? limits : { ...limits, maxContextTokens: noted };
}

/** Writes `run.json` anew. To be called by whoever holds the folder's lock. */
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

/** What no start can read, with what is expected in its place. */
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

/** A program's own manifest may hold anything: what is written is what a later start can read. */
function requireReadable(name: string, asked: RunManifest): void {
  const [part] = unreadableParts(asked);
  if (part === undefined) return;
  const value = JSON.stringify(asked[part.name]);
  throw new UsageError(
    `Cannot open ${name}: ${part.name} of its manifest is ${value}, expected ${part.expected}`,
  );
}

/** Removes a recording in which nothing was sampled: what it begins is another run's. */
async function dropRecording(files: Files, dir: string): Promise<void> {
  const file = path.join(dir, recordingFile);
  try {
    await files.remove(file);
  } catch (error) {
    throw storageError("write", file, error);
  }
}

/** Returns the manifest that the last start noted in `events.jsonl`. */
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

/** Adds the members that no earlier start found, because the engine did not report them. */
function completeIdentity(
  before: RunManifest["identity"],
  now: RunManifest["identity"],
): RunManifest["identity"] {
  if (before === undefined || now === undefined) return before ?? now;
  const late = Object.entries(now).filter(([name]) => !Object.hasOwn(before, name));
  return late.length === 0 ? before : { ...before, ...Object.fromEntries(late) };
}

/** Whether two say that the same is played with the same. */
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

/** Whether a setting brings the former context limit back: an engine with a shorter one cannot hold it. */
function canTakeLimit({ identity: before }: RunManifest, now: RunManifest): boolean {
  const [was, is] = [Number(before?.[contextMember]), Number(now.identity?.[contextMember])];
  const isAsked = now.configuration[contextMember] !== undefined;
  return is > was || (isAsked && is < was);
}

/**
 * What differs in what two starts were asked for. A context limit that one was given and the other found is
 * compared by what came of it, among what was found.
 */
function askedDifferences(stored: RunManifest, manifest: RunManifest): readonly Difference[] {
  const isFound = [stored, manifest].every(({ identity }) => identity?.[contextMember]);
  return differences(stored.configuration, manifest.configuration).filter(
    ({ name, isNamedByBoth }) => isNamedByBoth || name !== contextMember || !isFound,
  );
}

interface Difference {
  readonly name: string;
  /** Such as `temperature was 1 and is 0.5`. */
  readonly text: string;
  /** Another version may name more or fewer things than this one. */
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

import { randomUUID } from "node:crypto";
import path from "node:path";
import { UsageError } from "../../errors.ts";
import { type Files, readText } from "../disk/files.ts";
import { scanLines } from "../disk/line-ranges.ts";
import { storageError } from "../disk/storage-error.ts";
import { toPromptTime } from "../prompt-time.ts";
import { recordingFile } from "../recording/recording-line.ts";
import { planOf, tasksMember, withTasksOf } from "../schedule/grown-plan.ts";
import { isSameRun, requireSameRun } from "./compare-manifests.ts";
import { eventsFile, startedType } from "./episode-events.ts";
import { parseJson } from "./episode-row.ts";
import { holdsSampled } from "./folder-journals.ts";
import { summaryFile } from "./folder-results.ts";
import {
  isManifest,
  manifestFile,
  writeManifest,
  unreadableParts,
  type FolderManifest,
  type RunManifest,
  type RunPlace,
} from "./run-manifest.ts";

/** The manifest of a folder, with notes for the user. */
interface ClaimedManifest {
  readonly manifest: FolderManifest;
  readonly notes: readonly string[];
}

/**
 * Makes a folder the folder of this run: writes `run.json` in a new folder, or compares the existing one. If `run.json`
 * is missing or damaged, the manifest of the last start in `events.jsonl` replaces it.
 *
 * @throws UsageError if the folder holds another run (the message names the difference), if it cannot be used, or if no
 *   later start could read the manifest.
 */
export async function claimManifest(
  { dir, name }: RunPlace,
  requested: RunManifest,
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
  requireReadable(name, requested);
  const file = path.join(dir, manifestFile);
  const { promptTime = toPromptTime(new Date(now())) } = requested;
  const manifest = { ...requested, runId: drawId(), promptTime };
  const stored = await readStored(files, file);
  if (typeof stored === "object") {
    try {
      return await resume({ dir, name }, { stored, manifest, files });
    } catch (error) {
      // The earlier start sampled nothing, so the folder can be used with corrected settings.
      if (await holdsSampled(files, dir)) throw error;
      await dropRecording(files, dir);
      await writeManifest(dir, manifest, { files });
      return { manifest, notes: [] };
    }
  }
  const last = await readLastStart(files, dir);
  if (!(await holdsSampled(files, dir))) {
    // Keeps the run id under which the tasks of started groups were recorded.
    const before = last !== undefined && isSameRun(last, manifest) ? last : undefined;
    if (before === undefined) await dropRecording(files, dir);
    const { runId = manifest.runId, promptTime: first = promptTime } = before ?? {};
    const claimed = { ...manifest, runId, promptTime: first };
    await writeManifest(dir, claimed, { files });
    return { manifest: claimed, notes: [] };
  }
  if (last === undefined) throw cannotRecover(name, stored);
  const { identity, turnwright, configuration } = last;
  const { runId = manifest.runId, promptTime: first = promptTime } = last;
  const plan = planOf(last);
  const found = { ...manifest.found, ...(plan !== undefined && { plan }) };
  const recovered = { ...manifest, turnwright, configuration, found, runId, promptTime: first };
  const known = identity === undefined ? recovered : { ...recovered, identity };
  const resumed = await resume({ dir, name }, { stored: known, manifest, files });
  await writeManifest(dir, resumed.manifest, { files });
  const note = `${file} was ${stored} and is written again: events.jsonl says what was played`;
  return { ...resumed, notes: [note, ...resumed.notes] };
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

/** Checks that a later start can read a program's manifest. */
function requireReadable(name: string, requested: RunManifest): void {
  const [part] = unreadableParts(requested);
  if (part === undefined) return;
  const value = JSON.stringify(requested[part.name]);
  throw new UsageError(
    `Cannot open ${name}: ${part.name} of its manifest is ${value}, expected ${part.expected}`,
  );
}

/** Removes a recording without samples: it was started by another run. */
async function dropRecording(files: Files, dir: string): Promise<void> {
  await dropFile(files, path.join(dir, recordingFile));
}

async function dropFile(files: Files, file: string): Promise<void> {
  try {
    await files.remove(file);
  } catch (error) {
    throw storageError("write", file, error);
  }
}

/** Returns the manifest that the last start wrote to `events.jsonl`. */
async function readLastStart(files: Files, dir: string): Promise<RunManifest | undefined> {
  const file = path.join(dir, eventsFile);
  let last: RunManifest | undefined;
  try {
    await scanLines(files, file, ({ bytes }) => {
      if (!bytes.includes(`"${startedType}"`)) return;
      const event = parseJson(bytes) as
        | {
            readonly type?: unknown;
            readonly manifest?: Partial<RunManifest>;
          }
        | null
        | undefined;
      if (event?.type !== startedType) return;
      if (isManifest(event.manifest)) last = event.manifest;
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  return last;
}

function cannotRecover(name: string, state: "missing" | "damaged"): UsageError {
  return new UsageError(
    `Cannot resume ${name}: its ${manifestFile} is ${state}, and events.jsonl does not say what was played; ` +
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
  const { manifest, files } = run;
  requireSameRun(name, run.stored, manifest);
  const isGrown = manifest.configuration[tasksMember] !== run.stored.configuration[tasksMember];
  const stored = isGrown ? withTasksOf(run.stored, manifest) : run.stored;
  const known = completeIdentity(stored.identity, manifest.identity);
  if (!isGrown && known === stored.identity && isOfFolder(stored))
    return { manifest: stored, notes: [] };
  const completed = { ...manifest, ...stored, ...(known && { identity: known }) };
  // An end that was reached with fewer tasks is none now.
  if (isGrown) await dropFile(files, path.join(dir, summaryFile));
  await writeManifest(dir, completed, { files });
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

import path from "node:path";
import type { Engine, EngineDescription } from "../engine/engine.ts";
import { RolloutError, UsageError, describeError } from "../errors.ts";
import { gatewayEnvironment } from "../gateway/session/to-episode.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { parseEpisodeRow, parseJson, type EpisodeRow } from "../run/folder/episode-row.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { scanLines } from "../run/disk/line-ranges.ts";
import { joinLines } from "../run/recording/read-recording.ts";
import { isFolder, openStoredRun } from "../report/read-run.ts";
import { readPromptTime } from "../run/prompt-time.ts";
import { indexRows } from "../run/folder/row-index.ts";
import { eventsFile } from "../run/folder/episode-events.ts";
import type { StoredEpisode } from "../run/recording/replay-episode.ts";
import { hasNoRows } from "../run/require-rows.ts";
import type { RunManifest } from "../run/folder/run-manifest.ts";
import type { Sample } from "../trajectory/sample.ts";
import { isForeignAgent } from "./config/agent-config.ts";
import { createRun, type Run } from "./create-run.ts";
import { indexRecordedLines, type RecordedLines } from "./recorded-lines.ts";
import { readRunConfig } from "./config/run-config.ts";
import type { GivenSettings } from "./config/setting.ts";
import { storedSettings } from "./config/stored-settings.ts";
import { readTextFile } from "../text/decode-text.ts";

/** One episode of a bug report, with all data to play it on another machine. JSON-able. */
export interface Bundle {
  readonly turnwrightBundle: 1;
  readonly manifest: RunManifest;
  /**
   * The start of the episode's run, in milliseconds since the epoch. Chat templates may print the
   * date. Manifests of later versions have it in `promptTime`.
   */
  readonly startedAtMs: number;
  /** Lines of `recording.jsonl`. */
  readonly recording: readonly string[];
  /** The recorded episode. Absent if the episode did not finish. */
  readonly episode?: EpisodeRow;
  readonly samples: readonly Sample[];
  /** The events of the episode in `events.jsonl`. */
  readonly events: readonly unknown[];
}

/** The recorded episodes of a run. */
export interface RecordedRun {
  readonly manifest: RunManifest;
  readonly startedAtMs: number;
  /** The ids of the recorded rollouts, in the order in which they started. */
  readonly rolloutIds: readonly string[];
  /** The ids of finished rollouts without a recording. */
  readonly unrecordedIds: readonly string[];
  /** Reads an episode. Returns `undefined` if its recording is damaged from the first line. */
  read(rolloutId: string): Promise<StoredEpisode | undefined>;
  /** Returns an episode's part of a bug report. */
  bundle(rolloutId: string): Promise<Bundle>;
}

/**
 * Opens a recording: a run's folder, or a file from `turnwright bundle`.
 * @throws UsageError if it is neither.
 */
export async function openRecordedRun(place: string): Promise<RecordedRun> {
  const isFile = place.endsWith(".json") && !(await isFolder(place));
  return isFile ? openBundle(await readBundle(place)) : await openFolder(place);
}

async function readBundle(file: string): Promise<Bundle> {
  try {
    const bundle = JSON.parse(await readTextFile(file)) as Partial<Bundle> | null;
    if (bundle?.turnwrightBundle === 1) return bundle as Bundle;
  } catch (cause) {
    throw new UsageError(`Cannot read ${file}: ${describeError(cause)}`, { cause });
  }
  throw new UsageError(`Cannot read ${file}: expected a file that \`turnwright bundle\` wrote`);
}

function openBundle(bundle: Bundle): RecordedRun {
  const { manifest, startedAtMs, recording, episode, samples } = bundle;
  const { runId } = manifest;
  const lines = recording.map((line) => Buffer.from(line));
  const recorded = joinLines(lines, runId);
  if (recorded === undefined) throw new UsageError("Cannot read the bundle: it has no recording");
  const { rolloutId } = recorded.begin;
  return {
    manifest,
    startedAtMs,
    rolloutIds: [rolloutId],
    unrecordedIds: [],
    read: async (wanted) =>
      wanted === rolloutId
        ? { recorded, samples, ...withoutUndefined({ row: episode, runId }) }
        : undefined,
    bundle: async () => bundle,
  };
}

async function openFolder(name: string): Promise<RecordedRun> {
  const files = storedFiles;
  // An absolute path, because the working directory may change.
  const dir = path.resolve(name);
  const { manifest } = await openStoredRun(name);
  const { runId } = manifest;
  const lines = await indexRecordedLines(dir, files);
  const { rolloutIds, unrecordedIds } = lines;
  const startedAtMs = (await firstStart(dir)) ?? Date.now();
  return {
    manifest,
    startedAtMs,
    rolloutIds,
    unrecordedIds,
    async read(rolloutId) {
      const found = await lines.read(rolloutId);
      const recorded = joinLines(found.recording, runId);
      return (
        recorded && { recorded, ...parseEpisode(found), ...(runId !== undefined && { runId }) }
      );
    },
    async bundle(rolloutId) {
      const found = await lines.read(rolloutId);
      const { row, samples } = parseEpisode(found);
      const eventRows = await indexRows(files, path.join(dir, eventsFile));
      const events = await eventRows.read(rolloutId);
      return {
        turnwrightBundle: 1,
        manifest,
        startedAtMs,
        recording: found.recording.map((line) => line.toString("utf8")),
        ...(row && { episode: row }),
        samples,
        events: events.map((line) => parseJson(line)),
      };
    },
  };
}

function parseEpisode({ episodes, samples }: RecordedLines): Omit<StoredEpisode, "recorded"> {
  const row = episodes.map((line) => parseEpisodeRow(line)).at(-1);
  const rows = samples.map((line) => parseJson(line) as Sample);
  return {
    ...(row !== undefined && { row }),
    samples: rows.toSorted((a, b) => a.segment - b.segment),
  };
}

async function firstStart(dir: string): Promise<number | undefined> {
  let atMs: number | undefined;
  await scanLines(storedFiles, path.join(dir, eventsFile), ({ bytes }) => {
    if (atMs !== undefined || !bytes.includes('"run-started"')) return;
    const event = parseJson(bytes) as { readonly atMs?: unknown } | undefined;
    if (typeof event?.atMs === "number") atMs = event.atMs;
  });
  return atMs;
}

/** The default user of a run that a program started. */
export const defaultUser = { user: "scripted" } as const;

/**
 * Assembles the parts of a recorded run without its engine. Needs no server and no key.
 * @param changed - Settings that replace the recorded ones, such as the folders of data and models.
 * @throws UsageError as `createRun()` does.
 */
export async function createReplay(
  { manifest, startedAtMs }: Pick<RecordedRun, "manifest" | "startedAtMs">,
  changed: GivenSettings = {},
): Promise<Run> {
  if (isGateways(manifest))
    throw keptByAgents("the run", "the agents of a gateway keep the conversations themselves");
  const settings = { ...defaultUser, ...storedSettings(manifest), ...changed };
  const doing = "play the run again";
  requireKnownSetup(settings, { doing, remedy: replayRemedy });
  const engine = manifest.found["engine"] as EngineDescription | undefined;
  if (engine === undefined) throw unknownSetup("the engine (found.engine)", doing, replayRemedy);
  const config = readRunConfig(settings);
  if (isForeignAgent(config.agent)) {
    throw keptByAgents("these episodes", "their agent keeps its conversations itself");
  }
  return await createRun(config, {
    now: () => readPromptTime(manifest.promptTime)?.getTime() ?? startedAtMs,
    env: withoutKeys(process.env),
    engine: recordedEngine(engine, { returnsMessages: hasNoRows(manifest.found) }),
  });
}

/**
 * Throws if the run's settings name no environment, for example because a program started the run.
 * @param settings - The known settings.
 * @param doing - The requested action, such as `fork lamp/test/0#0`.
 * @param remedy - The advice in the message.
 * @throws UsageError
 */
export function requireKnownSetup(
  { env }: GivenSettings,
  { doing, remedy }: { readonly doing: string; readonly remedy: string },
): void {
  if (env === undefined) throw unknownSetup("the environment", doing, remedy);
}

function unknownSetup(what: string, doing: string, remedy: string): UsageError {
  return new UsageError(
    `Cannot ${doing}: run.json does not name ${what} that it was played with, as where a program started the run; ` +
      `${remedy} (docs/runs.md)`,
  );
}

const replayRemedy = "play it again from that program, by replayEpisode() with its own setup";

/** True for a gateway's run. All other runs name their environment. */
function isGateways({ configuration, found }: RunManifest): boolean {
  const plan = found["plan"] as Partial<typeof gatewayEnvironment> | null | undefined;
  const { name, split } = gatewayEnvironment;
  const isSo = configuration["env"] === undefined && plan?.split === split;
  return isSo && (plan as { readonly environment?: unknown }).environment === name;
}

/**
 * Returns the error for an episode of an agent that managed its own conversation.
 * @param keeping - A description of the agent that manages the conversation.
 */
function keptByAgents(what: string, keeping: string): UsageError {
  return new UsageError(
    `Cannot play ${what} again: ${keeping}, and nothing of what was done there is recorded`,
  );
}

/** Returns environment variables with a placeholder for each API key that the settings require. */
function withoutKeys(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return new Proxy(env, {
    get: (target, name) =>
      typeof name === "string" ? (target[name] ?? "turnwright-replay-needs-no-key") : undefined,
  });
}

/** Returns an engine with the recorded description. It cannot sample. */
function recordedEngine(
  description: EngineDescription,
  { returnsMessages }: { readonly returnsMessages: boolean },
): Engine {
  const refuse = (): Promise<never> =>
    Promise.reject(
      new RolloutError("engine/bad-request", "Cannot sample: there is a recording, and no engine"),
    );
  return {
    kind: description.kind,
    generate: refuse,
    ...(returnsMessages && { complete: refuse }),
    describe: async () => description,
    close: async () => {},
  };
}

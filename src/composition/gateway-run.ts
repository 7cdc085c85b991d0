import path from "node:path";
import type { ColumnSpecs } from "../columns/column-specs.ts";
import type { EngineDescription } from "../engine/engine.ts";
import type { Episode } from "../episode/episode.ts";
import { UsageError, describeError, describeStack } from "../errors.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { createRenderer } from "../renderer/create-renderer.ts";
import { renderAt } from "../renderer/render-at.ts";
import { systemClock, type Clock } from "../async/clock.ts";
import { watchEngine, type EngineOutage } from "../run/policy/engine-watch.ts";
import { readPromptTime, toPromptTime } from "../run/prompt-time.ts";
import { redactEpisode } from "../run/folder/redact-episode.ts";
import { RunFolder, type RunManifest } from "../run/folder/run-folder.ts";
import { withRecordedContext } from "../run/folder/run-manifest.ts";
import { RunTally, type RunProgress } from "../run/run-progress.ts";
import { resolveColumns } from "./resolve-columns.ts";
import { describeEngine, engineFacts, requireRunColumns } from "./describe-engine.ts";
import { createEngine, type Variables } from "./create-engine.ts";
import { requireVariables } from "./config/require-variables.ts";
import { createRunRedactor } from "./run-secrets.ts";
import { describeIdentity, fingerprintModule } from "./run-identity.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { describeSettings } from "./config/stored-settings.ts";
import { readVersion } from "./version.ts";
import { Gateway } from "../gateway/gateway.ts";
import { gatewaySettings, type GatewayConfig } from "./config/gateway-config.ts";
import { loadScorer } from "../gateway/load-scorer.ts";
import { gatewayEnvironment } from "../gateway/session/to-episode.ts";
import { SessionJournal } from "../gateway/session/session-journal.ts";

/** A gateway with its run's folder. */
export interface GatewayRun extends AsyncDisposable {
  readonly gateway: Gateway;
  readonly folder: RunFolder;
  /** Warnings about the engine and the chat template. */
  readonly warnings: readonly string[];
  /** Notes for the user about the content of the folder. */
  readonly notes: readonly string[];
  /** Sums over the finished sessions. */
  progress(): RunProgress;
  /** Writes the end event and the totals. The run counts as `finished` if no session is open. */
  end(): Promise<void>;
}

/** The surroundings of a gateway: signal, clock, environment variables, engine. */
export interface GatewaySurroundings {
  readonly env?: Variables;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
  /** Called with errors of Turnwright. The run's events also have them. */
  readonly onTrouble?: (error: unknown) => void;
  /**
   * Called when the engine stops answering, and when it answers again. The run's events also have
   * this.
   */
  readonly onEngine?: (news: EngineOutage) => void;
  readonly clock?: Clock;
  readonly signal?: AbortSignal;
}

/**
 * Assembles a gateway: engine, renderer and run folder, with its unfinished sessions.
 * @throws UsageError if a part cannot be loaded or combined, or if the folder belongs to another
 *   gateway.
 * @throws RolloutError if the engine does not answer.
 */
export async function createGatewayRun(
  config: GatewayConfig,
  {
    env = process.env,
    now = Date.now,
    clock = systemClock,
    onTrouble,
    onEngine,
    signal,
  }: GatewaySurroundings = {},
): Promise<GatewayRun> {
  const opened: (() => Promise<void> | undefined)[] = [];
  try {
    return await openParts(config, { env, now, clock, onTrouble, onEngine, signal, opened });
  } catch (error) {
    await closeAll(opened);
    throw error;
  }
}

/** Closes the opened parts, the last first. Closes all of them even if closing one fails. */
async function closeAll(opened: (() => Promise<void> | undefined)[]): Promise<void> {
  const failures: unknown[] = [];
  for (const close of opened.splice(0).toReversed()) {
    try {
      await close();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

async function openParts(
  config: GatewayConfig,
  around: {
    readonly env: Variables;
    readonly now: () => number;
    readonly clock: Clock;
    readonly onTrouble: ((error: unknown) => void) | undefined;
    readonly onEngine: ((news: EngineOutage) => void) | undefined;
    readonly signal: AbortSignal | undefined;
    /** Functions that close the opened parts, in opening order. */
    readonly opened: (() => Promise<void> | undefined)[];
  },
): Promise<GatewayRun> {
  const { env, now, clock, onTrouble, onEngine, signal, opened } = around;
  requireVariables(config.settings, env);
  const redactor = createRunRedactor(config, env);
  const engine = await createEngine(config.engine, env);
  opened.push(() => engine.close());
  const made = await createRenderer(config.renderer);
  opened.push(() => made.codec.close?.());
  const description = await describeEngine(engine, { signal, clock });
  const { scorerFile } = config;
  const scorer = scorerFile === undefined ? undefined : await loadScorer(scorerFile);
  const columns = await resolveColumns(config.columns, config.renderer.modelDir);
  await requireRunColumns(engine, columns, signal);
  const manifest = redactor.clean(
    await describeGateway(config, { renderer: made, description, columns }),
  );
  const dir = config.dir ?? path.join("runs", `gateway-${stampOf(now())}`);
  const begun = { ...manifest, promptTime: toPromptTime(new Date(now())) };
  const folder = await RunFolder.open(dir, begun, { retryFailed: false, setsAside: true });
  opened.push(() => folder[Symbol.asyncDispose]());
  const columnStore = columns && (await folder.openColumns());
  await folder.results.removeSummary();
  const renderer = renderAt(made, readPromptTime(folder.manifest.promptTime));
  const tally = new RunTally({ planned: 0, now });
  for (const row of folder.finished) tally.episodeResumed(row);
  const report = (error: unknown): void => {
    redactor.error(error);
    void writeTrouble(folder, { error, redactor, atMs: now() });
    onTrouble?.(error);
  };
  const watch = watchEngine(engine, {
    clock,
    onOutage: (news) => {
      onEngine?.(news);
      // If the disk refuses this event, writing the next turn fails, too, and is reported.
      folder.writeEvent({ ...news, atMs: now() }).catch(() => {});
    },
  });
  opened.push(async () => await watch[Symbol.asyncDispose]());
  const engineLimits = { maxContextTokens: description.contextLength ?? Infinity };
  const { maxContextTokens } = withRecordedContext(engineLimits, folder.manifest);
  const gateway = new Gateway(
    {
      engine: watch.engine,
      renderer,
      now,
      onTrouble: report,
      onFailure: report,
      ...pick(config),
      ...(columns && columnStore && { columns: { specs: columns, store: columnStore } }),
      ...(scorer !== undefined && { scorer }),
      onTurn: (turn) => tally.turnEnded({ ...turn, environmentMs: 0 }),
      onEpisode: async (episode) => await writeEpisode(folder, tally, { episode, redactor, now }),
    },
    maxContextTokens,
  );
  opened.push(() => gateway[Symbol.asyncDispose]());
  const clean: Redactor["clean"] = (value) => redactor.clean(value);
  const journal = await SessionJournal.open(folder, { store: gateway.store, clean });
  gateway.useJournal(journal, { syncColumns: columnStore && (() => columnStore.flush()) });
  const { found: _found, ...asked } = folder.manifest;
  const resumed = folder.finished.length;
  const start = { type: "run-started", atMs: now(), planned: resumed, resumed, manifest: asked };
  await folder.writeEvent(start);
  for (const { session, end } of journal.withoutEpisode) await gateway.finishAgain(session, end);
  return {
    gateway,
    folder,
    notes: [...folder.notes, ...journal.notes],
    warnings: [...renderer.card.warnings, ...(description.warnings ?? [])],
    progress: () => tally.progress(),
    async end() {
      const end = gateway.store.openCount === 0 ? "finished" : "interrupted";
      const { warning } = gateway;
      await folder.writeEvent({ type: "run-ended", atMs: now(), end });
      await folder.results.writeSummary({
        end,
        ...tally.progress(),
        gateway: gateway.counts,
        ...(warning !== undefined && { warning }),
      });
    },
    [Symbol.asyncDispose]: async () => await closeAll(opened),
  };
}

function pick(config: GatewayConfig) {
  const { sampling, clientSampling, constraints, strictness, rows, limits, holdMs } = config;
  return {
    sampling,
    clientSampling,
    constraints,
    strictness,
    rows,
    limits,
    holdMs,
    ...withoutUndefined({ ignore: config.ignore, policyModels: config.policyModels }),
  };
}

function stampOf(atMs: number): string {
  return new Date(atMs).toISOString().replaceAll(/[:.]/g, "-");
}

async function writeEpisode(
  folder: RunFolder,
  tally: RunTally,
  about: { readonly episode: Episode; readonly redactor: Redactor; readonly now: () => number },
): Promise<void> {
  const { redactor, now } = about;
  const episode = await redactEpisode(about.episode, redactor);
  await folder.results.removeEvaluation();
  const episodeHash = await folder.writeEpisode(episode);
  tally.episodeStarted();
  tally.episodeFinished(episode);
  const { rolloutId, outcome, stopReason, reward, failure, durationMs } = episode;
  await folder.writeEvent({
    type: "episode-finished",
    atMs: now(),
    rolloutId,
    outcome,
    stopReason,
    ...withoutUndefined({ reward, failure }),
    durationMs,
    episodeHash,
  });
}

async function writeTrouble(
  folder: RunFolder,
  about: { readonly error: unknown; readonly redactor: Redactor; readonly atMs: number },
): Promise<void> {
  const { error, redactor, atMs } = about;
  const message = redactor.text(error instanceof Error ? error.message : describeError(error));
  const stack = redactor.text(describeStack(error));
  try {
    await folder.writeEvent({ type: "trouble", atMs, message, stack });
  } catch (failure) {
    // If the disk refuses this event, writing the next episode fails, too, and is reported.
    if (!(failure instanceof UsageError)) throw failure;
  }
}

async function describeGateway(
  config: GatewayConfig,
  {
    renderer,
    description,
    columns,
  }: {
    readonly renderer: Renderer;
    readonly description: EngineDescription;
    readonly columns: ColumnSpecs | undefined;
  },
): Promise<RunManifest> {
  const { engine, scorerFile, limits } = config;
  const { contextLength = Infinity } = description;
  const parts = {
    renderer,
    engine: description,
    limits: { maxContextTokens: limits.maxContextTokens ?? contextLength },
  };
  const { settings, configuration } = describeSettings(config.settings, gatewaySettings);
  return {
    format: 1,
    turnwright: await readVersion(),
    configuration,
    identity: {
      ...(await describeIdentity({ engine, renderer: config.renderer, limits }, parts)),
      ...withoutUndefined({ scorer: await describeScorer(scorerFile) }),
    },
    found: {
      ...engineFacts(description, columns),
      template: renderer.card,
      vocabularySize: renderer.codec.vocabularySize,
      // The clients decide the number of sessions.
      plan: { environment: gatewayEnvironment.name, split: gatewayEnvironment.split, isOpen: true },
      settings,
    },
  };
}

async function describeScorer(file: string | undefined): Promise<string | undefined> {
  return file === undefined ? "none" : await fingerprintModule(path.resolve(file));
}

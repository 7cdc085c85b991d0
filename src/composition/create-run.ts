import path from "node:path";
import type { Engine, EngineDescription } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import { requireOpenNames } from "../run/folder/open-names.ts";
import { planRun, type RunPlan } from "../run/schedule/plan-run.ts";
import { openPlan } from "../run/schedule/planned-run.ts";
import { toPromptTime } from "../run/prompt-time.ts";
import { RunFolder, type RunManifest } from "../run/folder/run-folder.ts";
import { withRecordedContext } from "../run/folder/run-manifest.ts";
import { runRollouts, type RunOptions, type RunResult } from "../run/run-rollouts.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { probeEngine, probeUser } from "./probe-chat.ts";
import { describeEngine, requireRunColumns } from "./describe-engine.ts";
import { describeRun } from "./describe-run.ts";
import { isForeignAgent } from "./config/agent-config.ts";
import { createAgent } from "./create-agent.ts";
import { createEngine, type Variables } from "./create-engine.ts";
import { createRunRenderer } from "./create-run-renderer.ts";
import { createRunUser } from "./create-run-user.ts";
import { loadEnvironment } from "./environment/environments.ts";
import { describePlan, sourceOf } from "./config/run-epochs.ts";
import { resolveColumns } from "./resolve-columns.ts";
import { toRunScope } from "./run-scope.ts";
import type { RunConfig } from "./config/run-config.ts";
import { describeIdentity } from "./run-identity.ts";
import { requireVariables } from "./config/require-variables.ts";
import { createRunRedactor } from "./run-secrets.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import type { Redactor } from "../secrets/redactor.ts";

/** Options for playing a run. */
export type PlayOptions = Pick<
  RunOptions,
  | "signal"
  | "player"
  | "onProgress"
  | "onEpisode"
  | "keepsEpisodes"
  | "onEngine"
  | "onAdmission"
  | "source"
> & {
  /** The plan, with group sizes and seeds. Default: the configured one. */
  readonly plan?: RunPlan;
  /** The number of concurrent episodes. Default: the configured one. */
  readonly concurrency?: number;
};

/** An assembled run, ready to play. */
export interface Run extends AsyncDisposable {
  readonly config: RunConfig;
  readonly environment: Environment;
  readonly plan: RunPlan;
  /** The parts of each episode, also for `playEpisode()`. */
  readonly setup: Omit<EpisodeSetup, "onTurn">;
  /**
   * Removes secrets from texts that the run shows or writes: the API keys of the engine and of the user's model, and
   * secrets in their addresses.
   */
  readonly redactor: Redactor;
  /** The content of `run.json`. */
  readonly manifest: RunManifest;
  /** Warnings about the engine and the chat template. */
  readonly warnings: readonly string[];
  /**
   * Opens the run's folder to start or resume it: the named one, or a new one. `run.json` has the plan of the episodes.
   * If the caller chooses the tasks with `startRun()`, their number is open.
   * @param onWait - Called with the reason for a wait for another process.
   * @param options.isOpen - True if the caller chooses the tasks, so that their number is open. Default false.
   * @param options.manifest - The content of `run.json`, in place of `manifest`.
   * @throws UsageError if the folder has a run with another configuration, or cannot be written, or if the engine does
   *   not return the run's side columns.
   */
  openFolder(
    onWait?: (why: string) => void,
    options?: { readonly isOpen?: boolean; readonly manifest?: RunManifest },
  ): Promise<RunFolder>;
  /** Plays the episodes that the folder lacks. Throws as `runRollouts()` does. */
  play(folder: RunFolder, options: PlayOptions): Promise<RunResult>;
  /** Closes the engine, the tokenizer and the connections of the user's model. */
  [Symbol.asyncDispose](): Promise<void>;
}

/** The surroundings of a run: signal, clock, environment variables, engine. */
export interface RunSurroundings {
  /** Ends the wait for an engine that does not answer. */
  readonly signal?: AbortSignal;
  /** Milliseconds since the epoch. Default `Date.now`. */
  readonly now?: () => number;
  /** Environment variables, which hold API keys. Default: the process's. */
  readonly env?: Variables;
  /** An engine that replaces the configured one. */
  readonly engine?: Engine;
  /** The name of this process for others that wait for the folder. Default: its script's name. */
  readonly command?: string;
}

/**
 * Assembles a run, for the command line, a service or a library's user.
 * @throws UsageError if a part cannot be loaded or combined.
 * @throws RolloutError if the engine does not answer.
 */
export async function createRun(config: RunConfig, around: RunSurroundings = {}): Promise<Run> {
  const { now = Date.now, env = process.env, signal } = around;
  requireVariables(config.settings, env);
  const redactor = createRunRedactor(config, env);
  const opened: Closable[] = [];
  const close = async () => {
    const ends = await Promise.allSettled(
      opened.splice(0).map(async (part) => await part.close?.()),
    );
    for (const end of ends) if (end.status === "rejected") throw end.reason;
  };
  try {
    const environment = await loadEnvironment(config.environment);
    requireOpenNames(environment, redactor);
    const scope = toRunScope(config.scope, environment);
    const plan = planRun(environment, scope);
    const user = await createRunUser(config.user, { environment: config.environment, env });
    opened.push(user);
    if (around.engine === undefined) {
      await probeUser(config.user, { env, signal });
      await probeEngine(config.engine, { env, signal });
    }
    const engine = around.engine ?? (await createEngine(config.engine, env));
    opened.push(engine);
    const renderer = await openRunRenderer(config, opened);
    const place = {
      ...(renderer && { renderer }),
      environment,
      ...withoutUndefined({ dataDir: config.environment.dataDir }),
    };
    const { agent, play } = await openAgent(config.agent, place, opened);
    const { engineTimeoutMs: timeoutMs } = config.limits;
    const description = await describeEngine(engine, { signal, timeoutMs });
    const { contextLength = Infinity } = description;
    const limits = { maxContextTokens: contextLength, ...config.limits };
    const { sampling } = config;
    const columns = await resolveColumns(config.columns, config.renderer?.modelDir);
    const promptTime = new Date(now());
    const parts = { environment, user, engine, agent, sampling, limits, now, promptTime };
    const setup = { ...parts, ...withoutUndefined({ renderer, columns, play }) };
    const found = { environment, renderer, engine: description };
    const described = await describeRun({
      ...found,
      settings: config.settings,
      split: scope.split,
      identity: await describeIdentity(config, { ...found, limits }),
      plan: describePlan(config.scope, { environment: environment.name, ...scope }),
      columns,
    });
    const manifest = redactor.clean(described);
    return {
      config,
      environment,
      plan,
      setup,
      redactor,
      manifest,
      warnings: [...(renderer?.card.warnings ?? []), ...warningsOf(description, config)].map(
        (each) => redactor.text(each),
      ),
      async openFolder(onWait = () => {}, { isOpen = false, manifest: played = manifest } = {}) {
        // A replay opens no folder and has no engine.
        await requireRunColumns(engine, columns, signal);
        const { dir = newFolder(environment, now), retryFailed, record, format } = config.conduct;
        const command = around.command && redactor.text(around.command);
        const lock = { onWait, ...withoutUndefined({ signal, command }) };
        const begun = {
          promptTime: toPromptTime(promptTime),
          ...played,
          ...(isOpen && { found: { ...played.found, plan: openPlan } }),
        };
        return await RunFolder.open(dir, begun, {
          retryFailed,
          record,
          lock,
          ...(format !== undefined && { format }),
        });
      },
      async play(folder, options) {
        const { concurrency, followLoad, attempts, maxFailuresInRow } = config.conduct;
        const conduct = { concurrency, followLoad, attempts, maxFailuresInRow };
        const source = sourceOf(config.scope, plan, environment, folder.finished);
        return await runRollouts({
          plan,
          source,
          setup: { ...setup, limits: withRecordedContext(limits, folder.manifest) },
          folder,
          redactor,
          ...conduct,
          ...withoutUndefined({ model: description.model, branchAt: config.scope.branchAt }),
          ...options,
        });
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    redactor.error(error);
    await close();
    throw error;
  }
}

interface Closable {
  close?(): Promise<void>;
}

/** Creates the renderer, unless the engine returns messages. */
async function openRunRenderer(
  { agent, renderer: given }: RunConfig,
  opened: Closable[],
): Promise<Renderer | undefined> {
  if (given === undefined) return undefined;
  const renderer = await createRunRenderer({ agent, renderer: given });
  opened.push(renderer.codec);
  return renderer;
}

/** Creates the agent, or the player of an agent that manages its own conversations. */
async function openAgent(
  config: RunConfig["agent"],
  place: Parameters<typeof createAgent>[1],
  opened: Closable[],
): Promise<Pick<EpisodeSetup, "agent" | "play">> {
  if (!isForeignAgent(config)) return { agent: await createAgent(config, place) };
  const { createPlayer } = await import("./create-player.ts");
  const player = await createPlayer(config, place);
  opened.push(player);
  return { agent: player.agent, play: player.play };
}

function newFolder({ name }: Environment, now: () => number): string {
  const stamp = new Date(now()).toISOString().replaceAll(/[:.]/g, "-");
  return path.join("runs", `${name}-${stamp}`);
}

function warningsOf(
  { kind, logprobConvention, warnings = [] }: EngineDescription,
  { sampling: { temperature = 1 } }: RunConfig,
): readonly string[] {
  if (logprobConvention !== "raw" || temperature === 1 || temperature === 0) return warnings;
  return [
    ...warnings,
    `${kind} gives logprobs of the untempered distribution, and turns are sampled at ` +
      `temperature ${temperature}: they are not the logprobs of what was sampled from`,
  ];
}

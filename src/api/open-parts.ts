import { createEngine } from "../composition/create-engine.ts";
import { describeEngine, requireRunColumns } from "../composition/describe-engine.ts";
import { createAgent } from "../composition/create-agent.ts";
import type { Redactor } from "../secrets/redactor.ts";
import { requireVariables } from "../composition/config/require-variables.ts";
import { createRunRedactor } from "../composition/run-secrets.ts";
import { createRunUser } from "../composition/create-run-user.ts";
import { createRunRenderer } from "../composition/create-run-renderer.ts";
import {
  assertMembers,
  environmentMembers,
  namedSplits,
  text,
} from "../composition/environment/environment-members.ts";
import { loadEnvironment } from "../composition/environment/environments.ts";
import {
  isForeignAgent,
  readAgentConfig,
  type AgentConfig,
  type ForeignAgentConfig,
} from "../composition/config/agent-config.ts";
import type { Agent } from "../agent/agent.ts";
import type { ForeignAgent } from "../gateway/agent/foreign-agent.ts";
import { requireChatSettings } from "../composition/config/chat-config.ts";
import { readConductConfig, type ConductConfig } from "../composition/config/conduct-config.ts";
import { readEngineConfig } from "../composition/config/engine-config.ts";
import { readLimitsConfig } from "../composition/config/limits-config.ts";
import { readRendererConfig } from "../composition/config/renderer-config.ts";
import { readColumns } from "../composition/config/columns-config.ts";
import { resolveColumns } from "../composition/resolve-columns.ts";
import { readSampling } from "../composition/config/sampling-config.ts";
import { readEnvironmentConfig, readScopeConfig } from "../composition/config/scope-config.ts";
import { readUserConfig } from "../composition/config/user-config.ts";
import { runSettings, type RunSettings } from "../composition/config/run-config.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { completeSettings } from "../composition/config/setting.ts";
import { describeIdentity, type NamedParts } from "../composition/run-identity.ts";
import { defaultSplit, toRunScope } from "../composition/run-scope.ts";
import { requireOpenNames } from "../run/folder/open-names.ts";
import { planRun, type RunPlan } from "../run/schedule/plan-run.ts";
import type { Engine, EngineDescription } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import { UsageError } from "../errors.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { createUser } from "../user/create-user.ts";
import type { User } from "../user/user.ts";
import { openHandedOut, type HandedOut } from "./hand-out.ts";
import { settingsOf, type RolloutOptions } from "./rollout-options.ts";

/** The assembled parts of a rollout. Disposing them closes the parts that were created for it. */
export interface OpenParts extends AsyncDisposable {
  readonly values: RunSettings;
  readonly plan: RunPlan;
  readonly setup: Omit<EpisodeSetup, "onTurn" | "onTrouble">;
  readonly conduct: ConductConfig;
  readonly engine: EngineDescription;
  /** Returns the hashes by which a later start recognises the run; see `describeIdentity()`. */
  readonly identity: () => Promise<Readonly<Record<string, string>>>;
  /**
   * Removes the secrets that the settings name. Parts that were passed as objects keep their own secrets.
   */
  readonly redactor: Redactor;
  /** The queue and folder of a run that workers play; absent if this process plays. */
  readonly handedOut?: HandedOut;
}

/**
 * Assembles the parts of a rollout: objects from the options, and parts that settings name.
 *
 * @throws UsageError if a part is missing or cannot be loaded, or if `source` is combined with
 *   settings that choose tasks.
 * @throws RolloutError if the engine does not answer.
 */
export async function openParts(options: RolloutOptions): Promise<OpenParts> {
  requireOneChoiceOfTasks(options);
  const { queue, shared, workers } = options;
  if (queue !== undefined || shared !== undefined || workers !== undefined) {
    return await openQueuedParts(options);
  }
  const values = completeSettings(runSettings, settingsOf(options)) as RunSettings;
  requireVariables(values, process.env);
  const { now = Date.now } = options;
  const own: { close?(): Promise<void> }[] = [];
  const close = async (): Promise<void> => {
    await Promise.all(own.splice(0).map(async (part) => await part.close?.()));
  };
  try {
    const environment = await openEnvironment(options, values);
    const redactor = redactorOf(options, values);
    requireOpenNames(environment, redactor);
    const plan = planRun(environment, scopeOf(options, values, environment));
    const engine = isPart(options.engine)
      ? options.engine
      : keep(own, await createEngine(readEngineConfig(values), process.env));
    const agentConfig = readAgentConfig(values, values.seed);
    if (engine.complete !== undefined) requireChatSettings(values, agentConfig, runSettings);
    const renderer =
      engine.complete === undefined
        ? await openRenderer(options, { values, agent: agentConfig }, own)
        : undefined;
    const user = isPart(options.user) ? options.user : await openUser(values, environment, own);
    const { data: dataDir } = values;
    const place = { environment, ...withoutUndefined({ renderer, dataDir }) };
    const { agent, play } = await openAgent(options.agent, agentConfig, { place, own });
    const asked = readLimitsConfig(values);
    const { signal, clock } = options;
    const timeoutMs = asked.engineTimeoutMs;
    const description = await describeEngine(engine, { signal, clock, timeoutMs });
    const { contextLength = Infinity, warnings = [] } = description;
    for (const warning of warnings) process.emitWarning(redactor.text(warning));
    const limits = { maxContextTokens: contextLength, ...asked };
    const conduct = readConductConfig(values, engineOf(options, values));
    const sampling = readSampling(values);
    const columns = await resolveColumns(readColumns(values), values.model);
    await requireRunColumns(engine, columns, signal);
    // A renderer object may have its own date, which stays.
    const promptTime = renderer?.now ?? new Date(now());
    const parts = { environment, user, engine, agent, sampling, limits, now, promptTime };
    const named = { ...namedIn(options, values, engine), limits: asked };
    const identity = async () => ({
      ...(await describeIdentity(named, { ...parts, renderer, engine: description })),
      ...namesOfGiven(options, parts),
    });
    return {
      values,
      plan,
      conduct,
      engine: description,
      redactor,
      identity,
      setup: { ...parts, ...withoutUndefined({ renderer, clock: options.clock, columns, play }) },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Settings that choose tasks, which a source replaces. */
const taskSettings = ["split", "tasks", "epochs", "groups"];

function requireOneChoiceOfTasks(options: RolloutOptions): void {
  if (options.source === undefined) return;
  const extra = taskSettings.find((name) => settingsOf(options)[name] !== undefined);
  if (extra === undefined) return;
  throw new UsageError(
    `Cannot use ${extra} with source: a source chooses the tasks, expected one of the two`,
  );
}

/** Returns the tasks to plan. Returns none if a source chooses the tasks. */
function scopeOf({ source }: RolloutOptions, values: RunSettings, environment: Environment) {
  const config = readScopeConfig(values);
  if (source === undefined) return toRunScope(config, environment);
  const split = defaultSplit(environment);
  return { split, taskIndexes: [], sampleCount: config.sampleCount, seed: config.seed };
}

/** Returns the parts that settings name. */
function namedIn(
  options: RolloutOptions,
  values: RunSettings,
  { complete }: Pick<Engine, "complete">,
): NamedParts {
  const hasOwnRenderer = options.renderer === undefined && complete === undefined;
  const { agent, engine, environment, user } = options;
  return {
    ...(!isPart(engine) && { engine: readEngineConfig(values) }),
    ...(hasOwnRenderer && { renderer: readRendererConfig(values, values.engine) }),
    ...(!isPart(environment) && { environment: readEnvironmentConfig(values) }),
    ...(!isPart(agent) && { agent: readAgentConfig(values, values.seed) }),
    ...(!isPart(user) && { user: readUserConfig(userValues(values)) }),
  };
}

/** Returns the names of the parts that were passed as objects. */
function namesOfGiven(
  options: RolloutOptions,
  { agent, environment, user }: Pick<EpisodeSetup, "agent" | "environment" | "user">,
): Readonly<Record<string, string>> {
  return {
    ...(isPart(options.environment) && { environment: environment.name }),
    ...(isPart(options.agent) && { agent: agent.strategy }),
    ...(isPart(options.user) && { user: user.strategy }),
  };
}

function redactorOf(options: RolloutOptions, values: RunSettings): Redactor {
  const user = isPart(options.user) ? {} : { user: readUserConfig(userValues(values)) };
  return createRunRedactor({ engine: engineOf(options, values), ...user }, process.env);
}

function userValues(values: RunSettings) {
  return { ...values, user: values.user ?? "scripted" } as const;
}

/** Assembles a queued run from settings, as the command line and the workers do. */
async function openQueuedParts(options: RolloutOptions): Promise<OpenParts> {
  const { run, handedOut } = await openHandedOut(options);
  const { plan, setup, config, manifest } = run;
  const { settings, conduct } = config;
  return {
    values: settings,
    plan,
    setup,
    conduct,
    handedOut,
    redactor: createRunRedactor(config, process.env),
    engine: manifest.found["engine"] as EngineDescription,
    identity: async () => manifest.identity ?? {},
    [Symbol.asyncDispose]: async () => await handedOut[Symbol.asyncDispose](),
  };
}

function isPart<Part extends object>(part: Part | string | undefined): part is Part {
  return typeof part === "object";
}

function keep<Part extends { close?(): Promise<void> }>(
  own: { close?(): Promise<void> }[],
  part: Part,
): Part {
  own.push(part);
  return part;
}

async function openEnvironment(
  { environment }: RolloutOptions,
  values: RunSettings,
): Promise<Environment> {
  if (isPart(environment)) {
    if (typeof environment.open !== "function") {
      throw new UsageError(
        "Cannot play the environment: it is not an environment, expected what defineEnvironment() returns",
      );
    }
    const given: unknown = environment.name;
    const which = typeof given === "string" ? given : "that is given";
    // An environment object may have any name, and its splits need no number if the tasks are named.
    const members = { ...environmentMembers, name: text, splits: namedSplits };
    assertMembers(environment, members, `${which}: it has`);
    return environment;
  }
  return await loadEnvironment(readEnvironmentConfig(values));
}

async function openRenderer(
  { renderer: given }: RolloutOptions,
  { agent, values }: { readonly agent: AgentConfig; readonly values: RunSettings },
  own: { close?(): Promise<void> }[],
): Promise<Renderer> {
  if (given !== undefined) return withParsers(given, values);
  const renderer = await createRunRenderer({
    agent,
    renderer: readRendererConfig(values, values.engine),
  });
  keep(own, renderer.codec);
  return renderer;
}

/** Opens the agent strategy, or the player of an agent that manages its own conversations. */
async function openAgent(
  chosen: RolloutOptions["agent"],
  config: AgentConfig,
  around: {
    readonly place: Parameters<typeof createAgent>[1];
    readonly own: { close?(): Promise<void> }[];
  },
): Promise<Pick<EpisodeSetup, "agent" | "play">> {
  const { place, own } = around;
  if (isPart(chosen) && !isForeign(chosen)) return { agent: chosen };
  if (!isPart(chosen) && !isForeignAgent(config))
    return { agent: await createAgent(config, place) };
  const { createPlayer } = await import("../composition/create-player.ts");
  const foreign = isPart(chosen) ? chosen : (config as ForeignAgentConfig);
  const { agent, play } = keep(own, await createPlayer(foreign, place));
  return { agent, play };
}

function isForeign(agent: Agent | ForeignAgent): agent is ForeignAgent {
  return "run" in agent && typeof agent.run === "function";
}

/** Returns the renderer with the parsers that the settings name, if any. */
function withParsers(renderer: Renderer, values: RunSettings): Renderer {
  const named = withoutUndefined({
    parser: values.parser,
    reasoningParser: values["reasoning-parser"],
  });
  return { ...renderer, card: { ...renderer.card, ...named } };
}

/**
 * Opens the user: the configured strategy, otherwise the environment's user, otherwise one that
 * states the task.
 */
async function openUser(
  values: RunSettings,
  environment: Environment & { readonly user?: User },
  own: { close?(): Promise<void> }[],
): Promise<User> {
  const config = readUserConfig(userValues(values));
  if (config.strategy === "scripted" && config.scriptFile === undefined) {
    if (environment.user !== undefined) return environment.user;
    if (values.env === undefined) return createUser({ strategy: "scripted" });
  }
  const name = values.env ?? environment.name;
  return keep(own, await createRunUser(config, { environment: { name }, env: process.env }));
}

/**
 * Returns the engine's settings, from which the default concurrency follows; an engine object has none.
 */
function engineOf({ engine }: RolloutOptions, values: RunSettings) {
  if (!isPart(engine)) return readEngineConfig(values);
  return { kind: "sglang", urls: ["given"], turnTimeoutMs: 0 } as const;
}

import { readVariable } from "../secrets/read-variable.ts";
import { createHash } from "node:crypto";
import { hostname } from "node:os";
import path from "node:path";
import type { Engine } from "../engine/engine.ts";
import type { ReloadableEngine } from "../engine/reference/index.ts";
import { createEngine, type Variables } from "../composition/create-engine.ts";
import type { EngineConfig } from "../composition/config/engine-config.ts";
import type { LockOptions } from "../run/disk/lock-options.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { KnownPolicy } from "../queue/run/policy-state.ts";
import { handedOutAtOnce, type QueueConfig } from "../queue/queue-settings.ts";
import { createRun, type Run } from "../composition/create-run.ts";
import { describeEngine } from "../composition/describe-engine.ts";
import { loadEnvironment } from "../composition/environment/environments.ts";
import { readRunConfig } from "../composition/config/run-config.ts";
import { createRunRedactor } from "../composition/run-secrets.ts";
import { withoutUndefined } from "../values/without-undefined.ts";
import { requireAgentLightningColumns } from "../export/columns/agent-lightning-columns.ts";
import { AglBridge, aglTaker } from "./agent-lightning/agl-bridge.ts";
import { AglStore } from "./agent-lightning/agl-store.ts";
import { GymAgent, gymTaker } from "./nemo-gym/gym-agent.ts";
import { engineAddress } from "./engine-address.ts";
import type { RemotePlayers, RolloutServiceOptions } from "./rollout-service-options.ts";
import { RolloutService } from "./rollout-service.ts";
import { inProcessWeights } from "./in-process-weights.ts";
import type { ServiceConfig } from "./service-settings.ts";

/** A service with its adapters for other trainers, its warnings and its redactor. */
export interface CreatedService extends AsyncDisposable {
  readonly service: RolloutService;
  /** The adapter for NeMo Gym. */
  readonly gym: GymAgent;
  /** The adapter for agent-lightning. Absent if it is not configured. */
  readonly agentLightning?: AglBridge;
  /** Removes the secrets that the service was given. */
  readonly redactor: Redactor;
  /** Warnings about the engine and the chat template. */
  readonly warnings: readonly string[];
}

/**
 * Assembles a service and resumes the work in its data folder.
 * @throws UsageError if a part cannot be loaded or combined, or if another process uses the folder.
 * @throws RolloutError if the engine does not answer.
 */
export async function createService(
  {
    run: config,
    dir: named,
    maxQueued,
    keepsColumns,
    doctorTokens,
    batchEngines: engineUrls,
    tokenEnv,
    agentLightning: lightning,
    queue,
  }: ServiceConfig,
  {
    env = process.env,
    signal,
    lock,
    note: tell = () => {},
  }: {
    readonly env?: Variables;
    readonly signal?: AbortSignal;
    /** Called with messages for a person. */
    readonly note?: (text: string) => void;
    readonly lock?: Omit<LockOptions, "files">;
  } = {},
): Promise<CreatedService> {
  // Environments and users may change the working directory later.
  const dir = path.resolve(named);
  const redactor = createRunRedactor(config, env);
  readVariable(env, tokenEnv, "--token-env");
  readVariable(env, lightning?.keyEnv, "--agent-lightning-key-env");
  readVariable(env, queue?.passwordEnv, "--queue-password-env");
  const note = (text: string): void => tell(redactor.text(text));
  const environment = await loadEnvironment(config.environment);
  // `createRun()` needs a scope, but each batch names its own tasks.
  const [split = "test"] = Object.keys(environment.splits);
  const scoped = readRunConfig({ ...withoutUndefined(config.settings), split, tasks: "all" });
  const run = await createRun(scoped, { env, ...(signal !== undefined && { signal }) });
  const batchEngines = new Map<string, Engine>();
  const close = async (): Promise<void> => {
    for (const engine of batchEngines.values()) await engine.close();
    await run[Symbol.asyncDispose]();
  };
  try {
    const { columns } = run.setup;
    if (lightning !== undefined && columns !== undefined) requireAgentLightningColumns(columns);
    const { attempts, record } = config.conduct;
    for (const url of engineUrls) {
      // Each engine connects when a batch first names it.
      const at = { ...config.engine, urls: [url] } as EngineConfig;
      batchEngines.set(url, await createEngine(at, env));
    }
    const openRemote =
      queue &&
      ((policy: KnownPolicy) => openQueue(run, { queue, policy, dir, env, redactor, note }));
    // Workers have limits of their own.
    const mostAtOnce = config.settings.concurrency ?? handedOutAtOnce;
    const concurrency = queue === undefined ? config.conduct.concurrency : mostAtOnce;
    // With a queue, an engine in this process samples nothing, and the engines of the workers
    // cannot be reached.
    const isOutOfReach = queue !== undefined && !("urls" in config.engine);
    const weights = isOutOfReach
      ? undefined
      : await weightLoader(config, { env, engine: run.setup.engine, named: engineUrls });
    const gym = new GymAgent();
    const { model } = await describeEngine(run.setup.engine, { signal });
    const agentLightning = lightning && openBridge(lightning, { env, dir, redactor, note, model });
    const takers = {
      [gymTaker]: gym.taker,
      ...(agentLightning && { [aglTaker]: agentLightning.taker }),
    };
    const service = await RolloutService.open({
      dir,
      setup: run.setup,
      manifest: run.manifest,
      concurrency,
      attempts,
      maxQueued,
      keepsColumns,
      doctor: { tokenLimit: doctorTokens },
      record,
      redactor,
      takers,
      batchEngines,
      onTrouble: note,
      ...withoutUndefined({ weights, lock, openRemote }),
    });
    return {
      service,
      gym,
      redactor,
      ...(agentLightning !== undefined && { agentLightning }),
      warnings: run.warnings,
      async [Symbol.asyncDispose]() {
        try {
          await service[Symbol.asyncDispose]();
        } finally {
          await close();
        }
      },
    };
  } catch (error) {
    redactor.error(error);
    await close();
    throw error;
  }
}

function openBridge(
  { url, keyEnv }: NonNullable<ServiceConfig["agentLightning"]>,
  about: {
    readonly env: Variables;
    readonly dir: string;
    readonly redactor: Redactor;
    readonly note: (text: string) => void;
    readonly model: string | undefined;
  },
): AglBridge {
  const { env, dir, redactor, note, model = "policy" } = about;
  const key = readVariable(env, keyEnv, "--agent-lightning-key-env");
  redactor.learn(key ?? "");
  redactor.learnUrl(url);
  const place = createHash("sha256")
    .update(`${hostname()}\n${path.resolve(dir)}`)
    .digest("hex");
  const store = new AglStore({
    url,
    attempt: `turnwright-${place.slice(0, 12)}`,
    ...(key !== undefined && { key }),
  });
  return new AglBridge({ store, model, note });
}

/**
 * Opens the queue that hands out the attempts of all batches. Loads nothing if there is no queue.
 */
async function openQueue(
  run: Run,
  around: {
    readonly queue: QueueConfig;
    readonly policy: KnownPolicy;
    readonly dir: string;
    readonly env: Variables;
    readonly redactor: Redactor;
    readonly note: (text: string) => void;
  },
): Promise<RemotePlayers> {
  const { openHandOut } = await import("../queue/open-hand-out.ts");
  const { describeContact, describeHandOut } = await import("../queue/describe-hand-out.ts");
  const { queue, policy, dir, env, redactor, note } = around;
  const { setup, manifest, config } = run;
  // Workers know only these secrets, and every worker must redact the run in the same way.
  const shared = createRunRedactor(config, env);
  const opened = await openHandOut({
    config: queue,
    dir,
    manifest,
    redactor: shared,
    env,
    policy,
    environment: setup.environment.name,
    sampling: config.sampling,
    isMarked: true,
    limits: setup.limits,
    columns: setup.columns,
    isRecorded: config.conduct.record !== "none",
    onNews: (news) => {
      const text = describeHandOut(news);
      if (text !== undefined) note(text);
    },
    onContact: (contact) => note(describeContact(contact)),
  }).finally(() => redactor.learnFrom(shared));
  for (const text of opened.warnings) note(text);
  const { handOut } = opened;
  return {
    policy: handOut.policy,
    player: (scope) => handOut.player(scope),
    [Symbol.asyncDispose]: async () => await opened[Symbol.asyncDispose](),
  };
}

/** Returns the engine's weight loader, or `undefined` if the engine cannot load weights. */
async function weightLoader(
  { engine: config }: ServiceConfig["run"],
  {
    env,
    engine,
    named,
  }: {
    readonly env: Variables;
    readonly engine: Engine;
    /**
     * Addresses of engines that batches may name. They serve the same policy with the same weights.
     */
    readonly named: readonly string[];
  },
): Promise<RolloutServiceOptions["weights"]> {
  if ("loadWeights" in engine) return inProcessWeights(engine as ReloadableEngine);
  if (config.kind !== "sglang" && config.kind !== "vllm") return undefined;
  const apiKey = config.apiKeyEnv === undefined ? undefined : env[config.apiKeyEnv];
  const urls = [...new Set([...config.urls.map((url) => engineAddress(url) ?? url), ...named])];
  const servers = { urls, ...(apiKey !== undefined && { apiKey }) };
  if (config.kind === "vllm") {
    const { createVllmWeightLoader } = await import("../engine/vllm/load-weights.ts");
    const loader = createVllmWeightLoader(servers);
    return {
      namesVersions: true,
      findProblem: async (weights) => await loader.findProblem(weights),
      load: async (weights) => await loader.load(weights),
      have: () => Promise.resolve(false),
    };
  }
  const { findSglangProblem, haveSglangWeights, loadSglangWeights } =
    await import("../engine/sglang/load-weights.ts");
  return {
    namesVersions: true,
    findProblem: async (weights) => await findSglangProblem(servers, weights),
    load: async (weights) => await loadSglangWeights(servers, weights),
    have: async (weights) => await haveSglangWeights(servers, weights),
  };
}

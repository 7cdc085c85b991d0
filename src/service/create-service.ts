import type { ReloadableEngine } from "../engine/reference/index.ts";
import type { Variables } from "../setup/create-engine.ts";
import type { LockOptions } from "../run/run-lock.ts";
import { createRun } from "../setup/create-run.ts";
import { loadEnvironment } from "../setup/environments.ts";
import { readRunConfig } from "../setup/run-config.ts";
import { createRunRedactor } from "../setup/run-secrets.ts";
import { given } from "../internal/given.ts";
import { RolloutService, type RolloutServiceOptions } from "./rollout-service.ts";
import type { ServiceConfig } from "./service-settings.ts";

/** A service with the parts that it plays with. */
export interface CreatedService extends AsyncDisposable {
  readonly service: RolloutService;
  /** What a person should know of engine and template. */
  readonly warnings: readonly string[];
}

/**
 * Puts a service together and goes on with what its data folder holds.
 *
 * @throws UsageError for what cannot be loaded or used together, or a folder that is in use.
 * @throws RolloutError where the engine does not answer.
 */
export async function createService(
  { run: config, dir, maxQueued }: ServiceConfig,
  {
    env = process.env,
    signal,
    lock,
  }: {
    readonly env?: Variables;
    readonly signal?: AbortSignal;
    readonly lock?: Omit<LockOptions, "files">;
  } = {},
): Promise<CreatedService> {
  const environment = await loadEnvironment(config.environment.name, config.environment.dataDir);
  // What is put together wants a scope; batches bring their own.
  const [split = "test"] = Object.keys(environment.splits);
  const scoped = readRunConfig({ ...given(config.settings), split, tasks: "all" });
  const reloadable = await createReloadable(config);
  const { engine } = reloadable ?? {};
  const run = await createRun(scoped, { env, ...given({ signal, engine }) });
  try {
    const { concurrency, attempts, record } = config.conduct;
    const service = await RolloutService.open({
      ...{ dir, setup: run.setup, manifest: run.manifest },
      ...{ concurrency, attempts, maxQueued, record },
      redactor: createRunRedactor(config, env),
      beginsAnew: reloadable !== undefined,
      ...given({ loadWeights: reloadable?.load ?? sglangLoader(config, env), lock }),
    });
    return {
      service,
      warnings: run.warnings,
      async [Symbol.asyncDispose]() {
        await using _run = run;
        await service[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await run[Symbol.asyncDispose]();
    throw error;
  }
}

/** The engine where it is in this process and its weights can be changed. */
async function createReloadable({
  engine,
}: ServiceConfig["run"]): Promise<ReloadableEngine | undefined> {
  if (engine.kind !== "reference") return undefined;
  const { createReloadableEngine } = await import("../engine/reference/index.ts");
  const { modelDir, threadCount: threads, sequenceCount: maxBatch } = engine;
  return await createReloadableEngine({ modelDir, ...given({ threads, maxBatch }) });
}

/** How SGLang is told to load weights; nothing for servers that cannot be told. */
function sglangLoader(
  { engine }: ServiceConfig["run"],
  env: Variables,
): RolloutServiceOptions["loadWeights"] {
  if (engine.kind !== "sglang") return undefined;
  const apiKey = engine.apiKeyEnv === undefined ? undefined : env[engine.apiKeyEnv];
  return async (path, version) => {
    const { loadSglangWeights } = await import("../engine/sglang/load-weights.ts");
    const servers = { urls: engine.urls, ...given({ apiKey }) };
    await loadSglangWeights(servers, { path, version: String(version) });
  };
}

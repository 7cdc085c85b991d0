import { isPythonEnvironment } from "../environment/python/python-name.ts";
import path from "node:path";
import type { EngineDescription } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import type { EpisodeLimits } from "../episode/limits.ts";
import { findModelFolder } from "../hub/find-model-folder.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { contextMember } from "../run/folder/run-manifest.ts";
import { readModelFolder } from "../tokenizer/model-folder.ts";
import type { EngineConfig } from "./config/engine-config.ts";
import { isModulePath, isTauName } from "./environment/environment-names.ts";
import { bundleDir, loadPython } from "./environment/environments.ts";
import { fingerprintFile, fingerprintFiles, hashOf, listFiles } from "./fingerprint.ts";
import { findModuleFiles } from "./environment/module-files.ts";
import type { RunConfig } from "./config/run-config.ts";
import type { EnvironmentConfig } from "./config/scope-config.ts";
import { withoutUndefined } from "../values/without-undefined.ts";

/** The parts that a run's settings name. A part that a program passed as an object is absent. */
export type NamedParts = Partial<
  Pick<RunConfig, "environment" | "engine" | "renderer" | "agent" | "user">
> & {
  readonly limits?: Partial<Pick<EpisodeLimits, "maxContextTokens">>;
};

/** The parts of a run, from its configuration or from a program. */
interface RunParts {
  /** The environment. Absent if agents bring their own environment, as for a gateway. */
  readonly environment?: Environment;
  /** The renderer. Undefined if the engine returns messages. */
  readonly renderer: Renderer | undefined;
  readonly engine: EngineDescription;
  /** Includes the engine's context length if no other limit is configured. */
  readonly limits: Pick<EpisodeLimits, "maxContextTokens">;
}

/**
 * Returns the hashes that identify a run's content. Resuming with another model folder, other data
 * or another engine would mix two runs. Hashes are SHA-256. Paths are not included, because the
 * same files may be elsewhere.
 */
export async function describeIdentity(
  named: NamedParts,
  { environment, renderer, engine, limits }: RunParts,
): Promise<Readonly<Record<string, string>>> {
  return {
    engine: engine.kind,
    ...(await describeModel(named.engine, engine)),
    ...describeSampled(engine, { asked: named.limits, limits }),
    ...(await describeModelFolder(named.renderer)),
    ...(renderer && describeRenderer(renderer)),
    ...(environment && describeWorld(environment)),
    ...withoutUndefined({
      environmentData: await fingerprintEnvironment(named.environment),
      agentModule: await fingerprintAgent(named.agent),
      fewShotFile: await fingerprintGiven(fewShotFileOf(named)),
      userScript: await fingerprintGiven(userScriptOf(named)),
    }),
  };
}

function describeRenderer({
  card,
  codec,
  stopTokenIds,
}: Renderer): Readonly<Record<string, string>> {
  return {
    vocabularySize: String(codec.vocabularySize),
    stopTokens: stopTokenIds.join(" "),
    chatTemplate: card.templateHash,
  };
}

function describeWorld({ tools, policyText }: Environment): Readonly<Record<string, string>> {
  return { tools: hashJson(tools.map((tool) => tool.openai)), policyText: hashOf(policyText) };
}

/**
 * Returns the facts about an engine that affect where episodes end and how logprobs are defined.
 * The context limit has the name of the setting that replaces it, because both have the same
 * effect. The reference engine's limit is left out unless it is configured, because it depends on
 * the machine's memory and threads.
 */
function describeSampled(
  { kind, logprobConvention, isConventionAssumed }: EngineDescription,
  { asked, limits }: { readonly asked: NamedParts["limits"]; readonly limits: RunParts["limits"] },
): Readonly<Record<string, string>> {
  const { maxContextTokens } = limits;
  const isKept = kind !== "reference" || asked?.maxContextTokens !== undefined;
  return {
    ...(isKept &&
      Number.isFinite(maxContextTokens) && { [contextMember]: String(maxContextTokens) }),
    ...(isConventionAssumed !== true && withoutUndefined({ logprobConvention })),
  };
}

/**
 * Returns hashes of the files and variables of the model folder. Returns nothing for a renderer object, which may have
 * no folder.
 */
async function describeModelFolder(
  config: RunConfig["renderer"] | undefined,
): Promise<Readonly<Record<string, string>>> {
  if (config === undefined) return {};
  const modelDir = await findModelFolder(config.modelDir);
  const { specialTokens } = await readModelFolder(modelDir);
  const variables = new Map([...Object.entries(specialTokens), ...config.variables]);
  return {
    tokenizer: await fingerprintFiles(modelDir, ["tokenizer.json"]),
    templateVariables: hashJson(variables),
  };
}

function hashJson(value: PyDict | readonly PyValue[]): string {
  return hashOf(stringifyPythonJson(value, { ensureAscii: false }));
}

/** Describes the model: by its name if a server has it, by a hash of its weights if this process computes it. */
async function describeModel(
  config: EngineConfig | undefined,
  { model, weightsFile }: EngineDescription,
): Promise<Readonly<Record<string, string>>> {
  switch (config?.kind) {
    case "reference": {
      const modelDir = await findModelFolder(config.modelDir);
      const names = await listFiles(modelDir, "");
      const weights = names.filter((name) => /^[^/]*\.safetensors$|^config\.json$/.test(name));
      // A replay may run without the weights.
      if (weights.length === 0) return {};
      return { weights: await fingerprintFiles(modelDir, weights) };
    }
    case "llama":
      return {
        weights: (await fingerprintFile(config.file)) ?? config.file,
        ...withoutUndefined({ weightsFile: await fingerprintGiven(weightsFile) }),
      };
    default:
      return withoutUndefined({ servedModel: model });
  }
}

/**
 * Returns a hash of the files that define an environment: a module, a Python file or library, or τ-bench's data.
 * Returns `undefined` for an object, and for an environment of this package without data.
 */
async function fingerprintEnvironment(
  config: EnvironmentConfig | undefined,
): Promise<string | undefined> {
  if (config === undefined) return undefined;
  const { name, dataDir } = config;
  if (isPythonEnvironment(name)) return await fingerprintPython(config);
  if (isModulePath(name)) return await fingerprintModule(path.resolve(name));
  if (!isTauName(name)) return undefined;
  const dir = await bundleDir(dataDir);
  const domain = name.slice("tau-".length);
  const besides = ["agent-prompts.json", "user-simulator-prompts.json", `few-shot/${domain}.jsonl`];
  return await fingerprintFiles(dir, [...(await listFiles(dir, domain)), ...besides]);
}

/** Returns a hash of an environment in Python: of its files, the versions of its packages, and its tasks. */
async function fingerprintPython(config: EnvironmentConfig): Promise<string | undefined> {
  const { files, packages, tasksHash } = await loadPython(config);
  const dir = path.dirname(path.resolve(config.name));
  const names = files.map((file) => path.relative(dir, file).replaceAll(path.sep, "/"));
  const hashes = files.length === 0 ? "" : await fingerprintFiles(dir, names);
  return hashOf(JSON.stringify([hashes, packages, tasksHash]));
}

/**
 * Returns a hash of the files of a module's agent; `undefined` for any other agent. A run identifies a program
 * (`--agent-command`) by its command line.
 */
async function fingerprintAgent(agent: NamedParts["agent"]): Promise<string | undefined> {
  return agent?.strategy === "module"
    ? await fingerprintModule(path.resolve(agent.file))
    : undefined;
}

/**
 * Returns a hash of a module's files: of the file itself, or of it and the files that it imports.
 */
export async function fingerprintModule(entry: string): Promise<string | undefined> {
  const files = await findModuleFiles(entry);
  if (files.length === 1) return await fingerprintFile(entry);
  const dir = path.dirname(entry);
  const names = files.map((file) => path.relative(dir, file).replaceAll(path.sep, "/"));
  return await fingerprintFiles(dir, names);
}

async function fingerprintGiven(file: string | undefined): Promise<string | undefined> {
  return file === undefined ? undefined : await fingerprintFile(file);
}

function fewShotFileOf({ agent }: NamedParts): string | undefined {
  return agent?.strategy === "few-shot" ? agent.examples.file : undefined;
}

function userScriptOf({ user }: NamedParts): string | undefined {
  return user?.strategy === "scripted" ? user.scriptFile : undefined;
}

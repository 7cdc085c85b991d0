import path from "node:path";
import type { EngineDescription } from "../engine/engine.ts";
import type { Environment } from "../environment/environment.ts";
import type { EpisodeLimits } from "../episode/limits.ts";
import { findModelFolder } from "../hub/find-model-folder.ts";
import { stringifyPythonJson } from "../python/json/json-stringify.ts";
import type { PyDict, PyValue } from "../python/value.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { contextMember } from "../run/folder/run-manifest.ts";
import { readModelFolder } from "../tokenizer/model-folder.ts";
import type { EngineConfig } from "./config/engine-config.ts";
import { isModulePath, isTauName } from "./environment/environment-names.ts";
import { bundleDir } from "./environment/environments.ts";
import { fingerprintFile, fingerprintFiles, hashOf, listFiles } from "./fingerprint.ts";
import { findModuleFiles } from "./environment/module-files.ts";
import type { RunConfig } from "./config/run-config.ts";
import type { EnvironmentConfig } from "./config/scope-config.ts";
import { withoutUndefined } from "../values/without-undefined.ts";

/** What a run's settings name; whatever is left out was given to a program as it is. */
export type NamedParts = Partial<
  Pick<RunConfig, "environment" | "engine" | "renderer" | "agent" | "user">
> & {
  readonly limits?: Partial<Pick<EpisodeLimits, "maxContextTokens">>;
};

/** What a run plays with, as it was made of its configuration or given. */
interface RunParts {
  /** Absent where agents bring their own, as a gateway's do. */
  readonly environment?: Environment;
  readonly renderer: Renderer;
  readonly engine: EngineDescription;
  /** With the engine's context length where no other was asked for. */
  readonly limits: Pick<EpisodeLimits, "maxContextTokens">;
}

/**
 * What a run's content is known by: a run that is resumed with another model folder, other data or
 * another engine would mix two. Hashes are SHA-256; paths are not in it, since the same files may lie
 * elsewhere.
 */
export async function describeIdentity(
  named: NamedParts,
  { environment, renderer, engine, limits }: RunParts,
): Promise<Readonly<Record<string, string>>> {
  const { card, codec, stopTokenIds } = renderer;
  return {
    engine: engine.kind,
    ...(await describeModel(named.engine, engine)),
    ...describeSampled(engine, { asked: named.limits, limits }),
    ...(await describeModelFolder(named.renderer)),
    vocabularySize: String(codec.vocabularySize),
    stopTokens: stopTokenIds.join(" "),
    chatTemplate: card.templateHash,
    ...(environment && describeWorld(environment)),
    ...withoutUndefined({
      environmentData: await fingerprintEnvironment(named.environment),
      agentModule: await fingerprintAgent(named.agent),
      fewShotFile: await fingerprintGiven(fewShotFileOf(named)),
      userScript: await fingerprintGiven(userScriptOf(named)),
    }),
  };
}

function describeWorld({ tools, policyText }: Environment): Readonly<Record<string, string>> {
  return { tools: hashJson(tools.map((tool) => tool.openai)), policyText: hashOf(policyText) };
}

/**
 * What of an engine decides where episodes end and what their logprobs are of, as far as it says so. The
 * limit has the name of the setting that takes its place: what came of either is the same. That of the reference
 * engine is left out where it was not asked for: it follows from the memory and the threads of the machine, which
 * may change.
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
    ...(isConventionAssumed !== true && { logprobConvention }),
  };
}

/** Nothing of a renderer that was given: it need not come from a folder. */
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

/** A server's model is known by its name, one that is computed here by its weights. */
async function describeModel(
  config: EngineConfig | undefined,
  { model, weightsFile }: EngineDescription,
): Promise<Readonly<Record<string, string>>> {
  switch (config?.kind) {
    case "reference": {
      const modelDir = await findModelFolder(config.modelDir);
      const names = await listFiles(modelDir, "");
      const weights = names.filter((name) => /^[^/]*\.safetensors$|^config\.json$/.test(name));
      // Whoever plays a recording again need not have them.
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

/** Absent where the environment is a part of this package, or was given. */
async function fingerprintEnvironment(
  config: EnvironmentConfig | undefined,
): Promise<string | undefined> {
  if (config === undefined) return undefined;
  const { name, dataDir } = config;
  if (isModulePath(name)) return await fingerprintModule(path.resolve(name));
  if (!isTauName(name)) return undefined;
  const dir = await bundleDir(dataDir);
  const domain = name.slice("tau-".length);
  const besides = ["agent-prompts.json", "user-simulator-prompts.json", `few-shot/${domain}.jsonl`];
  return await fingerprintFiles(dir, [...(await listFiles(dir, domain)), ...besides]);
}

/**
 * Absent where the agent is a part of this package, was given, or is a program: that is known by its command
 * line.
 */
async function fingerprintAgent(agent: NamedParts["agent"]): Promise<string | undefined> {
  return agent?.strategy === "module"
    ? await fingerprintModule(path.resolve(agent.file))
    : undefined;
}

/** A module that is one file is known by that file, others by all files that are their own. */
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

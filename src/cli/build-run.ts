import { instructTemplate } from "../agent/tool-use-policy.ts";
import type { EngineDescription, SamplingParameters } from "../engine/engine.ts";
import { defaultLimits, type EpisodeLimits } from "../episode/limits.ts";
import { UsageError } from "../errors.ts";
import { parsePythonJson } from "../python/json-parse.ts";
import type { PyDict, PyValue } from "../python/value.ts";
import type { Dialect } from "../parser/tool-call-parser.ts";
import { createRenderer, type RendererOptions } from "../renderer/create-renderer.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { buildToolUsePolicy } from "./build-agent.ts";
import {
  listOf,
  numberOf,
  numberWithDefault,
  requiredText,
  textOf,
  type Settings,
} from "./option.ts";

/** The renderer that the settings name. */
export async function buildRenderer(settings: Settings, now: () => number): Promise<Renderer> {
  const policy = buildToolUsePolicy(settings);
  return await createRenderer({
    modelDir: requiredText(settings, "model", "the model's folder, with tokenizer.json"),
    historyPolicy: textOf(settings, "history") as "keep" | "split" | "refuse",
    guardPolicy: textOf(settings, "guard") as
      | "neutralise"
      | "special-only"
      | "hf-parity"
      | "reject",
    variables: templateVariables(settings),
    ...rendererChoices(settings),
    editTemplate: (source) => instructTemplate(source, policy),
    now: new Date(now()),
  });
}

/** What the settings say in the place of what is found out about the model. */
export function rendererChoices(
  settings: Settings,
): Pick<RendererOptions, "parsers" | "stopTokens" | "deltaBase"> {
  const stopTokens = listOf(settings, "stop-token");
  const parsers = {
    toolCallParser: textOf(settings, "parser"),
    reasoningParser: textOf(settings, "reasoning-parser"),
    dialect: textOf(settings, "dialect") as Dialect | undefined,
    engineVersion: textOf(settings, "engine-version"),
    servedBy: textOf(settings, "engine") === "vllm" ? ("vllm" as const) : undefined,
  };
  const given = Object.entries(parsers).filter(([, value]) => value !== undefined);
  return {
    parsers: Object.fromEntries(given),
    ...(stopTokens.length === 0 ? {} : { stopTokens: stopTokens.map(readStopToken) }),
    ...(textOf(settings, "delta-base") === "full" ? { deltaBase: "full" } : {}),
  };
}

function readStopToken(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** The chat template's variables, from `name=json` settings. */
export function templateVariables(settings: Settings): PyDict {
  const variables = new Map<string, PyValue>();
  for (const entry of listOf(settings, "template-variable")) {
    const split = entry.indexOf("=");
    if (split <= 0) {
      throw new UsageError(`Cannot read --template-variable ${entry}: expected name=value`);
    }
    variables.set(entry.slice(0, split), readVariable(entry.slice(split + 1)));
  }
  return variables;
}

/** JSON where it is JSON, text otherwise, so that quotes are not needed on the command line. */
function readVariable(text: string): PyValue {
  try {
    return parsePythonJson(text);
  } catch {
    return text;
  }
}

/** The episode limits; the engine's context length bounds the context where no setting does. */
export function buildLimits(settings: Settings, engine: EngineDescription): EpisodeLimits {
  const milliseconds = (name: string) => numberWithDefault(settings, name) * 1000;
  return {
    ...defaultLimits,
    maxTurns: numberWithDefault(settings, "max-turns"),
    maxTokensPerTurn: numberWithDefault(settings, "max-tokens-per-turn"),
    maxEpisodeTokens: numberOf(settings, "max-episode-tokens") ?? Infinity,
    maxContextTokens: numberOf(settings, "max-context") ?? engine.contextLength ?? Infinity,
    maxFormatErrors: numberWithDefault(settings, "max-format-errors"),
    episodeTimeoutMs: milliseconds("episode-timeout"),
    // The engine's own limit comes first: it can say what it had tried.
    engineTimeoutMs: milliseconds("engine-timeout") + 60_000,
    userTimeoutMs: milliseconds("user-timeout"),
    toolTimeoutMs: milliseconds("tool-timeout"),
    onLength: textOf(settings, "on-length") as EpisodeLimits["onLength"],
  };
}

/** The sampling parameters. */
export function buildSampling(settings: Settings): SamplingParameters {
  const seed = numberOf(settings, "sampling-seed");
  return {
    temperature: numberWithDefault(settings, "temperature"),
    topP: numberWithDefault(settings, "top-p"),
    topK: numberWithDefault(settings, "top-k"),
    minP: numberWithDefault(settings, "min-p"),
    ...(seed === undefined ? {} : { seed }),
  };
}

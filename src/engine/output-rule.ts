import { isObject } from "../values/is-object.ts";
import { RolloutError } from "../errors.ts";
import type { DiscardedSampling, GenerateRequest, Generation } from "./engine.ts";
import { emptyGeneration } from "./empty-generation.ts";

/**
 * Engine parameters that apply to the complete output of one request: its form, and texts that end
 * it or must not appear in it. Names that start with `guided_` are vLLM's older ones.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/sampling/sampling_params.py; vllm-project/vllm
 * vllm/sampling_params.py and vllm/entrypoints/openai/completion/protocol.py; ggml-org/llama.cpp
 * tools/server/server-schema.cpp.
 */
const ruleParameters = [
  "json_schema",
  "regex",
  "ebnf",
  "structural_tag",
  "choice",
  "structured_outputs",
  "response_format",
  "grammar",
  "guided_json",
  "guided_regex",
  "guided_choice",
  "guided_grammar",
  "guided_json_object",
  "stop",
  "stop_regex",
  "bad_words",
];

/**
 * The members of vLLM's `structured_outputs` that restrict the output. Its other members are
 * settings.
 */
const structuredOutputForms = [
  "json",
  "regex",
  "choice",
  "grammar",
  "json_object",
  "structural_tag",
];

/**
 * Returns the name of the first rule that applies to a request's complete output, or `undefined`.
 *
 * A turn with such a rule cannot be split over two requests. A grammar starts at each request's
 * first token, and stop texts are searched only in the output of one request.
 */
export function findOutputRule({
  constraint,
  sampling: { extra = {} },
}: Pick<GenerateRequest, "constraint" | "sampling">): string | undefined {
  if (constraint !== undefined) return `constraint (${constraint.type})`;
  const name = ruleParameters.find((parameter) => isRule(parameter, extra[parameter]));
  return name === undefined ? undefined : `sampling.extra.${name}`;
}

/** False for `null`, empty texts, settings without a form, and the response format `text`. */
function isRule(name: string, value: unknown): boolean {
  if (Array.isArray(value)) return value.some(Boolean);
  if (!isObject(value)) return Boolean(value);
  if (name === "structured_outputs") {
    return structuredOutputForms.some((form) => isRule(form, value[form]));
  }
  return name !== "response_format" || value["type"] !== "text";
}

/** Returns the reason for discarding a part of a turn that has such a rule. */
export function notResumable(rule: string): string {
  return `it was interrupted, and ${rule} applies to the complete turn`;
}

/** Returns an empty generation that lists all sampled ids of a turn as discarded. */
export function discardPartialTurn({ pieces, discarded }: Generation, rule: string): Generation {
  const reason = notResumable(rule);
  const parts: readonly DiscardedSampling[] = pieces.map(({ requestId, tokenCount }) => ({
    requestId,
    reason,
    tokenCount,
  }));
  return emptyGeneration([...parts, ...discarded]);
}

/**
 * Returns the error for an interrupted turn that has such a rule, if its first ids were already
 * streamed.
 */
export function interruptedAfterStreaming(
  requestId: string,
  {
    rule,
    why,
    discarded,
  }: {
    readonly rule: string;
    /** The reason of the interruption. */
    readonly why: string;
    readonly discarded: readonly DiscardedSampling[];
  },
): RolloutError {
  return new RolloutError(
    "engine/interrupted",
    `Cannot continue request ${requestId}: it was interrupted (${why || "no reason given"}) after tokens ` +
      `were streamed, and ${rule} applies to the complete turn, expected the turn to be requested again`,
    { retryable: true, discarded },
  );
}

/**
 * Returns the error for an interrupted turn that was already streamed and cannot be sampled again: its first ids
 * arrived without a column that no later request returns.
 */
export function lostColumns(
  requestId: string,
  {
    column,
    why,
    discarded,
  }: {
    readonly column: string;
    /** The reason of the interruption. */
    readonly why: string;
    readonly discarded: readonly DiscardedSampling[];
  },
): RolloutError {
  return new RolloutError(
    "engine/interrupted",
    `Cannot continue request ${requestId}: it was interrupted (${why || "no reason given"}) after tokens ` +
      `were streamed, and their column ${column} did not arrive, expected the turn to be requested again`,
    { retryable: true, discarded },
  );
}

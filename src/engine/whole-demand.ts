import { RolloutError } from "../errors.ts";
import type { DiscardedSampling, GenerateRequest, Generation } from "./engine.ts";
import { nothingSampled } from "./nothing-sampled.ts";
import { isObject } from "./http/reply-reading.ts";

/**
 * Engines' own parameters that are about the whole output of one request: the forms that it is held to, and the texts
 * that end it or must not be in it. Those named `guided_` are vLLM's older ones.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/sampling/sampling_params.py; vllm-project/vllm
 * vllm/sampling_params.py and vllm/entrypoints/openai/completion/protocol.py; ggml-org/llama.cpp
 * tools/server/server-schema.cpp.
 */
const wholeParameters = [
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

/** What vLLM's `structured_outputs` may hold an output to; whatever else is in it says how. */
const structuredForms = ["json", "regex", "choice", "grammar", "json_object", "structural_tag"];

/**
 * What a request demands of its output as a whole, by its name; nothing where there is no such thing. A grammar begins
 * with a request's own first token, and texts are looked for in what that request sampled: behind ids that another
 * request sampled, a form would begin anew, and a text that spans the two would be missed.
 */
export function findWholeDemand({
  constraint,
  stopTexts = [],
  sampling: { extra = {} },
}: Pick<GenerateRequest, "constraint" | "stopTexts" | "sampling">): string | undefined {
  if (constraint !== undefined) return `constraint (${constraint.type})`;
  if (isDemand("stopTexts", stopTexts)) return "stopTexts";
  const name = wholeParameters.find((parameter) => isDemand(parameter, extra[parameter]));
  return name === undefined ? undefined : `sampling.extra.${name}`;
}

/** `null` and empty texts demand nothing, and neither does a form of which only the settings are given, or plain text. */
function isDemand(name: string, value: unknown): boolean {
  if (Array.isArray(value)) return value.some(Boolean);
  if (!isObject(value)) return Boolean(value);
  if (name === "structured_outputs") {
    return structuredForms.some((form) => isDemand(form, value[form]));
  }
  return name !== "response_format" || value["type"] !== "text";
}

/** Why a part of a turn was discarded that a request with such a demand had brought. */
export function cannotGoOn(demand: string): string {
  return `it was interrupted, and ${demand} is of the whole turn`;
}

/** What is left of the part of a turn that cannot be continued: that it was sampled in vain. */
export function discardPart({ pieces, discarded }: Generation, demand: string): Generation {
  const reason = cannotGoOn(demand);
  const parts: readonly DiscardedSampling[] = pieces.map(({ requestId, tokenCount }) => ({
    requestId,
    reason,
    tokenCount,
  }));
  return nothingSampled([...parts, ...discarded]);
}

/** The failure of a turn that can neither go on nor begin anew, as its reader was told of its beginning. */
export function interruptedBehindTold(
  requestId: string,
  {
    demand,
    why,
    discarded,
  }: {
    readonly demand: string;
    /** What interrupted it. */
    readonly why: string;
    readonly discarded: readonly DiscardedSampling[];
  },
): RolloutError {
  return new RolloutError(
    "engine/interrupted",
    `Cannot sample on in request ${requestId}: it was interrupted (${why || "no reason given"}) behind tokens that ` +
      `were streamed, and ${demand} is of the whole turn, expected the turn to be asked for again`,
    { retryable: true, discarded },
  );
}

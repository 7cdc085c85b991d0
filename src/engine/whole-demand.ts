import { RolloutError } from "../errors.ts";
import type { DiscardedSampling, GenerateRequest, Generation } from "./engine.ts";
import { nothingSampled } from "./nothing-sampled.ts";

/**
 * Engines' own parameters that are about the whole output of one request: the forms that it is held to, and the texts
 * that end it or must not be in it. vLLM's older names all begin with `guided_`.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/sampling/sampling_params.py; vllm-project/vllm
 * vllm/sampling_params.py and vllm/entrypoints/openai/completion/protocol.py; ggml-org/llama.cpp
 * tools/server/server-schema.cpp.
 */
const wholeParameters = [
  ...["json_schema", "regex", "ebnf", "structural_tag", "choice"],
  ...["structured_outputs", "response_format", "grammar"],
  ...["stop", "stop_regex", "bad_words"],
];

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
  if (stopTexts.length > 0) return "stopTexts";
  const name = Object.keys(extra).find(
    (key) => (wholeParameters.includes(key) || key.startsWith("guided_")) && isGiven(extra[key]),
  );
  return name === undefined ? undefined : `sampling.extra.${name}`;
}

/** An empty list of texts demands nothing, and neither does `null`. */
function isGiven(value: unknown): boolean {
  return Array.isArray(value) ? value.length > 0 : Boolean(value);
}

/** Why a part of a turn was discarded that a request with such a demand had brought. */
export function cannotGoOn(demand: string): string {
  return `it was interrupted, and ${demand} is of the whole turn`;
}

/** What is left of the part of a turn that cannot be continued: that it was sampled in vain. */
export function discardPart({ pieces, discarded }: Generation, demand: string): Generation {
  const reason = cannotGoOn(demand);
  const parts: readonly DiscardedSampling[] = pieces.map(({ requestId, tokenCount }) => ({
    ...{ requestId, reason, tokenCount },
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

import type { SamplingParameters } from "../engine.ts";
import { hashText } from "../../values/hash-text.ts";
import type { BodyBytes } from "../http/byte-parts.ts";
import { jsonWithIds } from "../http/json-with-ids.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import type { LlamaCppSettings } from "./llama-cpp-options.ts";

/** The settings that all requests of one engine share. */
export interface BodyOptions {
  readonly settings: Pick<LlamaCppSettings, "model" | "slotAffinity">;
  /** True if the server can skip parsing of the sampled text. */
  readonly leavesTextUnparsed: boolean;
}

/** The fields of the reply: the ids and their data, without text and settings. */
const RESPONSE_FIELDS = [
  "tokens",
  "completion_probabilities",
  "stop_type",
  "stopping_word",
  "tokens_predicted",
  "tokens_evaluated",
  "tokens_cached",
  "truncated",
  "timings",
];

/**
 * A parser that accepts every text. Releases of 2026 parse the sampled text as a chat message, and
 * answer HTTP 500 if it is not valid UTF-8, for example because it ends within a character.
 *
 * **Source:** ggml-org/llama.cpp common/peg-parser.cpp (`from_json`) and common/chat.cpp.
 */
const ACCEPT_ALL = JSON.stringify({ parsers: [{ type: "epsilon" }], rules: {}, root: 0 });

/**
 * Returns the JSON body of `POST /completion` for a piece.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-schema.cpp.
 */
export function encodeCompletionBody(piece: PieceRequest, options: BodyOptions): BodyBytes {
  const { turn, inputIds, maxNewTokens } = piece;
  const fields = {
    ...encodeParameters(turn.sampling, { windowLength: inputIds.length + maxNewTokens }),
    ...(turn.constraint?.type === "json-schema" && { json_schema: turn.constraint.schema }),
    n_predict: maxNewTokens,
    // Logprobs of the sampled token only. 0 would return none.
    n_probs: 1,
    ...encodeRest(turn.sessionId, options),
  };
  return jsonWithIds(fields, { name: "prompt", ids: inputIds });
}

/**
 * Returns the JSON body of a request for the logprobs of the `shownCount` likeliest tokens after a
 * prompt. The id that is sampled does not matter, but its text must be complete characters.
 */
export function encodeScoringBody(
  inputIds: readonly number[],
  {
    shownCount,
    forcedId,
    sessionId,
    ...options
  }: BodyOptions & { shownCount: number; forcedId: number; sessionId: string },
): BodyBytes {
  const fields = {
    ...encodeParameters({ temperature: 0 }, { windowLength: 0 }),
    logit_bias: [[forcedId, FORCING_BIAS]],
    n_predict: 1,
    n_probs: shownCount,
    ...encodeRest(sessionId, options),
  };
  return jsonWithIds(fields, { name: "prompt", ids: inputIds });
}

/** A bias that forces one id. It changes the sampled id, but not the reported logprobs. */
const FORCING_BIAS = 1e9;

function encodeRest(
  sessionId: string,
  { settings: { model, slotAffinity }, leavesTextUnparsed }: BodyOptions,
): Record<string, unknown> {
  return {
    ...(model !== undefined && { model }),
    // The server takes the number modulo its slot count.
    ...(slotAffinity === "session" && { id_slot: hashText(sessionId) >>> 1 }),
    ...(leavesTextUnparsed && { chat_parser: ACCEPT_ALL }),
    cache_prompt: true,
    return_tokens: true,
    post_sampling_probs: false,
    stream: false,
    response_fields: RESPONSE_FIELDS,
  };
}

/**
 * Encodes every parameter, because a server takes missing ones from its command line. `samplers`
 * lists all transforms in the order of the other engines: the temperature comes before top-k, top-p
 * and min-p. llama.cpp's own order applies it last.
 */
function encodeParameters(
  sampling: SamplingParameters,
  { windowLength }: { windowLength: number },
): Record<string, unknown> {
  const { topK = -1 } = sampling;
  const repetition = sampling.repetitionPenalty ?? 1;
  const frequency = sampling.frequencyPenalty ?? 0;
  const presence = sampling.presencePenalty ?? 0;
  const penalises = repetition !== 1 || frequency !== 0 || presence !== 0;
  return {
    samplers: ["penalties", "temperature", "top_k", "top_p", "min_p"],
    mirostat: 0,
    temperature: sampling.temperature ?? 1,
    dynatemp_range: 0,
    top_k: topK === -1 ? 0 : topK,
    top_p: sampling.topP ?? 1,
    min_p: sampling.minP ?? 0,
    min_keep: 0,
    repeat_penalty: repetition,
    frequency_penalty: frequency,
    presence_penalty: presence,
    // Penalties apply to all tokens, as in other engines. The server keeps this many in memory.
    repeat_last_n: penalises ? windowLength : 0,
    // Without a seed, the server would use its own for every request. -1 is random.
    seed: sampling.seed ?? -1,
    ...sampling.extra,
  };
}

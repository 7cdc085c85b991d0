import type { SamplingParameters } from "../engine.ts";
import { hashText } from "../../values/hash-text.ts";
import { jsonWithIds } from "../http/json-with-ids.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import type { LlamaCppSettings } from "./llama-cpp-options.ts";

/** What all requests of one engine share. */
export interface BodyOptions {
  readonly settings: Pick<LlamaCppSettings, "model" | "slotAffinity">;
  /** Whether the server knows how to leave the text unparsed. */
  readonly leavesTextUnparsed: boolean;
}

/** What the reply is to hold: the ids and what belongs to them, and neither text nor settings. */
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
 * A grammar that matches nothing and so accepts every text. Releases of 2026 parse all that they
 * sample as a chat message, and answer HTTP 500 to what is not valid UTF-8, as a turn is not that
 * ends within a character.
 *
 * **Source:** ggml-org/llama.cpp common/peg-parser.cpp (`from_json`) and common/chat.cpp.
 */
const ACCEPT_ALL = JSON.stringify({ parsers: [{ type: "epsilon" }], rules: {}, root: 0 });

/**
 * The JSON body of `POST /completion` for a piece.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-schema.cpp.
 */
export function encodeCompletionBody(piece: PieceRequest, options: BodyOptions): Uint8Array {
  const { turn, inputIds, maxNewTokens } = piece;
  const fields = {
    ...encodeParameters(turn.sampling, { windowLength: inputIds.length + maxNewTokens }),
    ...encodeEnds(turn),
    n_predict: maxNewTokens,
    // Of the sampled token; 0 would give none.
    n_probs: 1,
    ...encodeRest(turn.sessionId, options),
  };
  return jsonWithIds(fields, { name: "prompt", ids: inputIds });
}

/**
 * The JSON body of a request that shows how likely each of the `shownCount` likeliest tokens is behind
 * a prompt. Which token is then sampled does not matter, but its text must be whole characters.
 */
export function encodeScoringBody(
  inputIds: readonly number[],
  {
    shownCount,
    forcedId,
    sessionId,
    ...options
  }: BodyOptions & { shownCount: number; forcedId: number; sessionId: string },
): Uint8Array {
  const fields = {
    ...encodeParameters({ temperature: 0 }, { windowLength: 0 }),
    logit_bias: [[forcedId, FORCING_BIAS]],
    n_predict: 1,
    n_probs: shownCount,
    ...encodeRest(sessionId, options),
  };
  return jsonWithIds(fields, { name: "prompt", ids: inputIds });
}

/** Text that ends the turn, and the form that it is held to. */
function encodeEnds({ stopTexts = [], constraint }: PieceRequest["turn"]): Record<string, unknown> {
  return {
    ...(stopTexts.length !== 0 && { stop: stopTexts }),
    ...(constraint?.type === "json-schema" && { json_schema: constraint.schema }),
  };
}

/** Biases change what is sampled, and not what is reported of the logits. */
const FORCING_BIAS = 1e9;

function encodeRest(
  sessionId: string,
  { settings: { model, slotAffinity }, leavesTextUnparsed }: BodyOptions,
): Record<string, unknown> {
  return {
    ...(model !== undefined && { model }),
    // The server takes it modulo the number of its slots.
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
 * Every parameter is spelled out, because a server fills what is left out from its own command line.
 * `samplers` names all that is applied, in the order of the other engines: the temperature comes
 * before top-k, top-p and min-p, where llama.cpp's own order has it last.
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
    // Over everything, as elsewhere; the server keeps a window of so many tokens in memory.
    repeat_last_n: penalises ? windowLength : 0,
    // What is left out would be the server's own, the same for every request; -1 is random.
    seed: sampling.seed ?? -1,
    ...sampling.extra,
  };
}

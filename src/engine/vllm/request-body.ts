import type { SamplingParameters } from "../engine.ts";
import { jsonWithIds } from "../http/json-with-ids.ts";
import type { PieceRequest } from "../http/piece-request.ts";

/** What a request's body holds besides the piece. */
interface BodyOptions {
  /** The request's id at the server. */
  readonly wireId: string;
  readonly model: string | undefined;
  /** Whether tokens are sent as they come. */
  readonly stream: boolean;
  /** Whether the reply is to list the prompt, as those of completions do in any case. */
  readonly listsPrompt?: boolean;
}

/**
 * The JSON body of `POST /inference/v1/generate`.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/protocol.py
 * (GenerateRequest) and vllm/sampling_params.py.
 */
export function encodeGenerateBody(
  piece: PieceRequest,
  { wireId, model, stream, listsPrompt = false }: BodyOptions,
): Uint8Array {
  const fields = {
    request_id: wireId,
    ...(model !== undefined && { model }),
    ...(listsPrompt && { return_token_ids: true }),
    sampling_params: encodeSampling(piece),
    ...encodeStream(stream),
  };
  return jsonWithIds(fields, { name: "token_ids", ids: piece.inputIds });
}

/**
 * The JSON body of `POST /v1/completions` with ids as prompt. Tokens beside the logprobs come as
 * `token_id:7`, so that each logprob names the id that it belongs to.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/openai/completion/protocol.py (CompletionRequest).
 */
export function encodeCompletionsBody(
  piece: PieceRequest,
  { wireId, model, stream }: BodyOptions,
): Uint8Array {
  const fields = {
    ...encodeSampling(piece),
    request_id: wireId,
    ...(model !== undefined && { model }),
    add_special_tokens: false,
    echo: false,
    return_token_ids: true,
    return_tokens_as_token_ids: true,
    ...encodeStream(stream),
  };
  return jsonWithIds(fields, { name: "prompt", ids: piece.inputIds });
}

/**
 * The names under which the server keeps a request, in both ways to ask.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/serving.py and
 * vllm/entrypoints/openai/completion/serving.py.
 */
export function toServerRequestIds(wireId: string): readonly string[] {
  return [`generate-tokens-${wireId}`, `cmpl-${wireId}-0`];
}

/** What was cached stands in the usage, which streams end with where they are asked to. */
function encodeStream(stream: boolean): Record<string, unknown> {
  return stream ? { stream, stream_options: { include_usage: true } } : { stream };
}

/** Text that ends the turn, and the form that it is held to. */
function encodeEnds({ stopTexts = [], constraint }: PieceRequest["turn"]): Record<string, unknown> {
  const stop = stopTexts.length === 0 ? {} : { stop: stopTexts };
  switch (constraint?.type) {
    case undefined:
      return stop;
    case "json-schema":
      return { ...stop, structured_outputs: { json: constraint.schema } };
    case "regex":
      return { ...stop, structured_outputs: { regex: constraint.pattern } };
    case "structural-tag":
      return {
        ...stop,
        structured_outputs: { structural_tag: JSON.stringify(constraint.tag) },
      };
  }
}

/** Both ways take the same names. The ids hold the stop id whatever is said of the text. */
function encodeSampling({ turn, maxNewTokens }: PieceRequest): Record<string, unknown> {
  return {
    ...encodeParameters(turn.sampling),
    ...encodeEnds(turn),
    n: 1,
    max_tokens: maxNewTokens,
    stop_token_ids: turn.stopTokenIds,
    // The sampled token's alone. Absent would mean none.
    logprobs: 0,
    skip_special_tokens: false,
    spaces_between_special_tokens: false,
    include_stop_str_in_output: true,
  };
}

/**
 * Every parameter is spelled out, because a server fills what is left out from the model's own
 * `generation_config.json`. `extra` may add and replace, but not what the turn itself decides.
 */
function encodeParameters(sampling: SamplingParameters): Record<string, unknown> {
  const { topK = -1 } = sampling;
  return {
    temperature: sampling.temperature ?? 1,
    top_p: sampling.topP ?? 1,
    top_k: topK === -1 ? 0 : topK,
    min_p: sampling.minP ?? 0,
    frequency_penalty: sampling.frequencyPenalty ?? 0,
    presence_penalty: sampling.presencePenalty ?? 0,
    repetition_penalty: sampling.repetitionPenalty ?? 1,
    ...(sampling.seed !== undefined && { seed: sampling.seed }),
    ...sampling.extra,
  };
}

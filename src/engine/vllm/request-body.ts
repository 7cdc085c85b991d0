import type { SamplingParameters } from "../engine.ts";
import type { BodyBytes } from "../http/byte-parts.ts";
import { jsonWithIds } from "../http/json-with-ids.ts";
import type { PieceRequest } from "../http/piece-request.ts";

/** The fields of a request's body other than the piece. */
interface BodyOptions {
  /** The request's id at the server. */
  readonly wireId: string;
  readonly model: string | undefined;
  /** True if tokens are sent as they are sampled. */
  readonly stream: boolean;
  /** True if the reply must list the prompt. Replies of completions always do. */
  readonly listsPrompt?: boolean;
}

/**
 * Returns the JSON body of `POST /inference/v1/generate`.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/protocol.py
 * (GenerateRequest) and vllm/sampling_params.py.
 */
export function encodeGenerateBody(
  piece: PieceRequest,
  { wireId, model, stream, listsPrompt = false }: BodyOptions,
): BodyBytes {
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
 * Returns the JSON body of `POST /v1/completions` with ids as prompt. Tokens are reported as
 * `token_id:7`, so that each logprob names its id.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/openai/completion/protocol.py (CompletionRequest).
 */
export function encodeCompletionsBody(
  piece: PieceRequest,
  { wireId, model, stream }: BodyOptions,
): BodyBytes {
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
 * Returns the names under which the server stores a request, one for each API.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/serving.py and
 * vllm/entrypoints/openai/completion/serving.py.
 */
export function toServerRequestIds(wireId: string): readonly string[] {
  return [`generate-tokens-${wireId}`, `cmpl-${wireId}-0`];
}

/**
 * Encodes streaming. The last chunk contains the usage if it is requested, and with it the cached
 * tokens.
 */
function encodeStream(stream: boolean): Record<string, unknown> {
  return stream ? { stream, stream_options: { include_usage: true } } : { stream };
}

/** Encodes the constraint on the output. */
function encodeForm({ constraint }: PieceRequest["turn"]): Record<string, unknown> {
  switch (constraint?.type) {
    case undefined:
      return {};
    case "json-schema":
      return { structured_outputs: { json: constraint.schema } };
    case "regex":
      return { structured_outputs: { regex: constraint.pattern } };
    case "structural-tag":
      return {
        structured_outputs: { structural_tag: JSON.stringify(constraint.tag) },
      };
  }
}

/**
 * Encodes the side columns. Without top logprobs, the value 0 requests only the sampled token's logprob; without the
 * member, the server would return no logprob. A server that was started to return routes and kept tokens returns them
 * with every reply.
 */
function encodeColumns(columns: PieceRequest["turn"]["columns"]): Record<string, unknown> {
  return {
    logprobs: columns?.specs.topLogprobs?.count ?? 0,
    ...(columns?.specs.routedExperts && { routed_experts_prompt_start: columns.knownRows }),
  };
}

/**
 * Encodes the parameters that both APIs share. The returned ids include the stop id in any case.
 */
function encodeSampling({ turn, maxNewTokens }: PieceRequest): Record<string, unknown> {
  return {
    ...encodeParameters(turn.sampling),
    ...encodeForm(turn),
    n: 1,
    max_tokens: maxNewTokens,
    stop_token_ids: turn.stopTokenIds,
    ...encodeColumns(turn.columns),
    skip_special_tokens: false,
    spaces_between_special_tokens: false,
    include_stop_str_in_output: true,
  };
}

/**
 * Encodes every parameter, because a server takes missing ones from the model's
 * `generation_config.json`. `extra` can add and replace parameters, but the caller sets the turn's
 * own fields after it.
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

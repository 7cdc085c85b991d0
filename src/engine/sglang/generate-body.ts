import type { SamplingParameters } from "../engine.ts";
import type { BodyBytes } from "../http/byte-parts.ts";
import { jsonWithIds } from "../http/json-with-ids.ts";
import type { PieceRequest, ScorePiece } from "../http/piece-request.ts";

/**
 * Returns the JSON body of `POST /generate`. A `logprob_start_len` of -1 requests logprobs of the
 * output only: scoring the prompt would bypass the prefix cache.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/managers/io_struct.py (GenerateReqInput) and
 * python/sglang/srt/sampling/sampling_params.py; the three text settings as in THUDM/slime.
 */
export function encodeGenerateBody(
  piece: PieceRequest,
  {
    wireId,
    stream,
    listsPrompt = false,
  }: { readonly wireId: string; readonly stream: boolean; readonly listsPrompt?: boolean },
): BodyBytes {
  const fields = {
    rid: wireId,
    sampling_params: {
      ...encodeSampling(piece.turn.sampling),
      ...encodeForm(piece.turn),
      max_new_tokens: piece.maxNewTokens,
      stop_token_ids: piece.turn.stopTokenIds,
      skip_special_tokens: false,
      spaces_between_special_tokens: false,
      no_stop_trim: true,
    },
    return_logprob: true,
    logprob_start_len: -1,
    ...(listsPrompt && { return_prompt_token_ids: true }),
    ...encodeColumns(piece.turn.columns),
    stream,
  };
  return jsonWithIds(fields, { name: "input_ids", ids: piece.inputIds });
}

/**
 * Returns the JSON body of a `POST /generate` that scores.
 *
 * `logprob_start_len` is the index before the first scored id, because the server returns no logprob for the entry at
 * that index.
 * The ids before it may be read from the prefix cache. The server does not apply the temperature to
 * scores; the body states the temperature 1.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/managers/schedule_batch.py
 * (`_compute_max_prefix_len`), python/sglang/srt/managers/scheduler_components/
 * logprob_result_processor.py, and python/sglang/srt/layers/logits_processor.py (input logprobs are
 * normalised without temperature and top-p).
 */
export function encodeScoreBody(
  { ids, from, topCount }: ScorePiece,
  { wireId }: { readonly wireId: string },
): BodyBytes {
  const fields = {
    rid: wireId,
    sampling_params: { ...encodeSampling({}), max_new_tokens: 0, skip_special_tokens: false },
    return_logprob: true,
    logprob_start_len: from - 1,
    ...(topCount !== undefined && { top_logprobs_num: topCount }),
    stream: false,
  };
  return jsonWithIds(fields, { name: "input_ids", ids });
}

/**
 * Encodes every parameter, because a server fills in missing ones with its own defaults. `extra`
 * can add and replace parameters, but the caller sets the turn's own fields after it.
 */
function encodeSampling(sampling: SamplingParameters): Record<string, unknown> {
  return {
    temperature: sampling.temperature ?? 1,
    top_p: sampling.topP ?? 1,
    top_k: sampling.topK ?? -1,
    min_p: sampling.minP ?? 0,
    frequency_penalty: sampling.frequencyPenalty ?? 0,
    presence_penalty: sampling.presencePenalty ?? 0,
    repetition_penalty: sampling.repetitionPenalty ?? 1,
    ...(sampling.seed !== undefined && { sampling_seed: sampling.seed }),
    ...sampling.extra,
  };
}

/**
 * Encodes the side columns. The server returns routes from a token on, and positions of the indexer always of all
 * tokens.
 */
function encodeColumns(columns: PieceRequest["turn"]["columns"]): Record<string, unknown> {
  if (columns === undefined) return {};
  const { routedExperts, keptTokens, topLogprobs, indexerTopK } = columns.specs;
  return {
    ...(routedExperts && {
      return_routed_experts: true,
      routed_experts_start_len: columns.knownRows,
    }),
    ...(keptTokens && { return_sampling_mask: true }),
    ...(topLogprobs && { top_logprobs_num: topLogprobs.count }),
    ...(indexerTopK && { return_indexer_topk: true }),
  };
}

/** Encodes the constraint on the output. */
function encodeForm({ constraint }: PieceRequest["turn"]): Record<string, unknown> {
  switch (constraint?.type) {
    case undefined:
      return {};
    case "json-schema":
      return { json_schema: JSON.stringify(constraint.schema) };
    case "regex":
      return { regex: constraint.pattern };
    case "structural-tag":
      return { structural_tag: JSON.stringify(constraint.tag) };
  }
}

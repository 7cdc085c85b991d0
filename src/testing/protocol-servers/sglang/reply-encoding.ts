import type { FinishReason, LiveSequence } from "../shared/request-scheduler.ts";
import { drawnTokens, encodeExperts, encodePositions } from "../shared/column-rows.ts";
import type { ColumnModel, LikelyToken, ScoredToken } from "../shared/column-model.ts";
import type { ServedColumns } from "./column-options.ts";
import type { ReleaseTraits } from "./releases.ts";
import type { DecodedRequest } from "./request-decoding.ts";

/** The facts that a reply depends on. */
export interface ReplyContext {
  readonly weightVersion: () => string;
  readonly traits: ReleaseTraits;
  readonly columns: ServedColumns;
  /** The number of ids. The last of them scores 0 in an input. */
  readonly vocabularySize: number;
  /** Returns the text of ids. */
  readonly detokenize: (ids: readonly number[]) => string;
}

/** A part of the output, in tokens: from `start` on, `end` exclusive. */
interface Window {
  readonly start: number;
  readonly end: number;
}

/**
 * Encodes a sequence as the engine's JSON: the final reply, or one frame of a stream. `since` is
 * the number of tokens in earlier frames, if frames are increments.
 * **Source:** sgl-project/sglang python/sglang/srt/managers/tokenizer_manager.py (`meta_info`) and
 * scheduler_components/logprob_result_processor.py (`input_token_logprobs`).
 */
export function encodeReply(
  sequence: LiveSequence<DecodedRequest>,
  context: ReplyContext,
  { since = 0 }: { since?: number } = {},
): Record<string, unknown> {
  const { request, outputIds } = sequence;
  const window = { start: since, end: outputIds.length };
  return {
    text: encodeText(sequence, context, window),
    output_ids: outputIds.slice(window.start, window.end),
    ...(request.returnPromptTokenIds && { prompt_token_ids: request.inputIds }),
    meta_info: encodeMeta(sequence, context, window),
  };
}

function encodeMeta(
  sequence: LiveSequence<DecodedRequest>,
  context: ReplyContext,
  window: Window,
): Record<string, unknown> {
  const { request, outputIds, versionSpans, finish } = sequence;
  const { reportsVersionSpans } = context.traits;
  return {
    id: request.rid,
    finish_reason: finish === undefined ? null : encodeFinish(finish, context),
    // A request that was aborted in the queue reports nothing about its prompt.
    ...(sequence.hasRun && {
      prompt_tokens: request.inputIds.length,
      cached_tokens: sequence.cachedTokenCount,
      ...(reportsVersionSpans && {
        cached_tokens_details: toCacheDetails(sequence.cachedTokenCount),
        dp_rank: null,
      }),
      num_retractions: sequence.retractionCount,
      reasoning_tokens: 0,
    }),
    weight_version: context.weightVersion(),
    ...(reportsVersionSpans &&
      sequence.hasRun &&
      finish !== undefined && {
        weight_versions: versionSpans,
        weight_version: versionSpans.at(-1)?.version,
      }),
    ...(request.returnLogprob && encodeLogprobs(sequence, context, window)),
    completion_tokens: outputIds.length,
    ...encodeBlobs(sequence, context),
    e2e_latency: 0,
  };
}

/** Encodes the columns in base64, which only the last frame of a stream has. */
function encodeBlobs(
  sequence: LiveSequence<DecodedRequest>,
  { columns: { routedExperts, indexerTopK, model } }: ReplyContext,
): Record<string, unknown> {
  const { request, finish, hasRun } = sequence;
  if (finish === undefined || !hasRun) return {};
  const { routesFrom: start, returnsIndexer } = request.columns;
  const routes =
    start !== undefined &&
    encodeExperts(sequence, { start, shape: routedExperts!, model, type: Int32Array });
  return {
    ...(routes && { routed_experts: routes.bytes.toString("base64") }),
    ...(returnsIndexer && {
      indexer_topk: encodePositions(sequence, { shape: indexerTopK!, model }).toString("base64"),
    }),
  };
}

/** Encodes the kept tokens and top logprobs of the tokens from `start` on. */
function encodeSampledColumns(
  sequence: LiveSequence<DecodedRequest>,
  { columns: { model } }: ReplyContext,
  { start }: Window,
): Record<string, unknown> {
  const { request, outputIds } = sequence;
  const { topLogprobsNum: count, samplingParams } = request;
  const tokens = drawnTokens(sequence, start);
  const topK = Number(samplingParams["top_k"]);
  const kept = request.columns.returnsMask ? tokens.map((token) => model.kept(token, topK)) : [];
  return {
    ...(count > 0 && {
      input_top_logprobs: encodeInputTops(sequence, { model, count }),
      // An empty generation has the tops of the token that would come next.
      output_top_logprobs: request.samplesNothing
        ? [encodeTops(model.promptTops(nextToken(request), count))]
        : tokens.map((token) => encodeTops(model.tops(token, count))),
    }),
    ...(request.columns.returnsMask && {
      output_token_sampling_mask: kept.map(({ ids }) => ids),
      output_token_sampling_logprobs: kept.map(({ logprob }) => logprob),
      output_token_sampling_mask_length: outputIds.length,
    }),
  };
}

/** Encodes the most probable tokens of the scored input. The first entry is always null. */
function encodeInputTops(
  { request: { inputIds, logprobStartLen }, inputLogprobs }: LiveSequence<DecodedRequest>,
  { model, count }: { readonly model: ColumnModel; readonly count: number },
): readonly unknown[] {
  return (inputLogprobs ?? []).slice(logprobStartLen).map((logprob, offset) => {
    if (offset === 0) return null;
    const position = logprobStartLen + offset;
    const token = { id: inputIds[position]!, logprob: logprob ?? 0, position };
    return encodeTops(model.promptTops(token, count));
  });
}

function encodeTops(tops: readonly LikelyToken[]): readonly unknown[] {
  return tops.map(({ id, logprob }) => [logprob, id, null]);
}

function nextToken({ inputIds }: DecodedRequest): ScoredToken {
  return { id: 0, logprob: -1, position: inputIds.length };
}

/** Returns the location of the cached tokens, or null if there are none. */
function toCacheDetails(count: number): unknown {
  return count === 0 ? null : { device: count, host: 0 };
}

/** Encodes the reason for a sequence's end. An abort that is not a failure also has `err_type`. */
function encodeFinish(finish: FinishReason, { traits }: ReplyContext): unknown {
  const isPlainAbort = finish.type === "abort" && finish.status_code === null;
  return isPlainAbort && traits.reportsVersionSpans ? { ...finish, err_type: null } : finish;
}

function encodeLogprobs(
  sequence: LiveSequence<DecodedRequest>,
  context: ReplyContext,
  window: Window,
): Record<string, unknown> {
  const { request, outputIds, outputLogprobs, inputLogprobs } = sequence;
  const { detokenize, vocabularySize } = context;
  const { start, end } = window;
  const toText = (id: number): string | null =>
    request.returnTextInLogprobs ? detokenize([id]) : null;
  const output: [logprob: number | undefined, id: number, text: string | null][] = [];
  for (let index = start; index < end; index++) {
    const id = outputIds[index] ?? 0;
    output.push([outputLogprobs[index], id, toText(id)]);
  }
  const { inputIds, logprobStartLen } = request;
  // The first entry of the list never has a logprob.
  const input = (inputLogprobs ?? [])
    .slice(logprobStartLen)
    .map((logprob, index) => [index === 0 ? null : logprob, inputIds[logprobStartLen + index]!]);
  return {
    input_token_logprobs: input.map(([logprob, id]) => {
      const named = id === vocabularySize - 1 ? 0 : Number(id);
      return [logprob, named, toText(named)];
    }),
    output_token_logprobs: output,
    output_token_logprobs_length: outputIds.length,
    ...encodeSampledColumns(sequence, context, window),
  };
}

/**
 * Returns the text without the stop token or stop string, unless the request keeps it. The ids
 * always include it.
 */
function encodeText(
  { request, outputIds, finish }: LiveSequence<DecodedRequest>,
  { detokenize }: ReplyContext,
  { start, end }: Window,
): string {
  const matched = finish?.type === "stop" ? finish.matched : undefined;
  const trims = request.samplingParams["no_stop_trim"] !== true && matched !== undefined;
  if (!trims) return detokenize(outputIds.slice(start, end));
  if (typeof matched === "number") return detokenize(outputIds.slice(start, end - 1));
  const text = detokenize(outputIds.slice(start, end));
  const cut = text.lastIndexOf(matched);
  return cut < 0 ? text : text.slice(0, cut);
}

import type { FinishReason, LiveSequence } from "../shared/request-scheduler.ts";
import type { ReleaseTraits } from "./releases.ts";
import type { DecodedRequest } from "./request-decoding.ts";

/** The facts that a reply depends on. */
export interface ReplyContext {
  readonly weightVersion: () => string;
  readonly traits: ReleaseTraits;
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
    e2e_latency: 0,
  };
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
  { request, outputIds, outputLogprobs, inputLogprobs }: LiveSequence<DecodedRequest>,
  { detokenize, vocabularySize }: ReplyContext,
  { start, end }: Window,
): Record<string, unknown> {
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
    ...(request.topLogprobsNum > 0 && { output_top_logprobs: output.map((entry) => [entry]) }),
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

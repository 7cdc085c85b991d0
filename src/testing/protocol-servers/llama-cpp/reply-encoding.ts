import type { LiveSequence } from "../shared/request-scheduler.ts";
import type { LlamaCppSequenceRequest } from "./request-decoding.ts";

/** The facts that a reply depends on. */
export interface ReplyContext {
  readonly modelPath: string;
  readonly contextLength: number;
  readonly endTokenIds: readonly number[];
  /** Ids with a text that ends inside a character. */
  readonly partialIds: readonly number[];
  /** Ids that are not among the likeliest thousand. */
  readonly unlikelyIds: readonly number[];
  /** True if a draft model proposes tokens. Their probabilities are not computed then. */
  readonly speculates: boolean;
  /** Returns the text of ids. */
  readonly detokenize: (ids: readonly number[]) => string;
}

type Sequence = LiveSequence<LlamaCppSequenceRequest>;

/** Sampled tokens in a reply. `ids[i]` is that of `logprobs[i]`. */
interface SampledTokens {
  readonly ids: readonly number[];
  readonly logprobs: readonly (number | undefined)[];
}

/** The reported logprob of a token that a bias forces. */
const FORCED_LOGPROB = -27.5;

/** The length of the list of likely tokens above which it includes unlikely ones. */
const LIKELY_COUNT = 1_024;

/** The value for a probability of 0: the lowest number in single precision. */
const LOGPROB_FLOOR = -3.4028234663852886e38;

/** Returns the sampled tokens. A bias can force another token than the policy's. */
export function toSampled({ request, outputIds, outputLogprobs }: Sequence): SampledTokens {
  const { forcedId } = request;
  if (forcedId === undefined) return { ids: outputIds, logprobs: outputLogprobs };
  return {
    ids: outputIds.map(() => forcedId),
    logprobs: outputIds.map(() => FORCED_LOGPROB),
  };
}

/**
 * The final reply.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-task.cpp (`to_json_non_oaicompat`).
 */
export function encodeReply(
  sequence: Sequence,
  { context, slotIndex, index }: { context: ReplyContext; slotIndex: number; index: number },
): Record<string, unknown> {
  const { request, cachedTokenCount } = sequence;
  const { ids, logprobs } = toSampled(sequence);
  const promptLength = request.inputIds.length;
  const isFull = promptLength + ids.length >= context.contextLength;
  const whole = {
    index,
    content: request.stream ? "" : context.detokenize(ids),
    tokens: request.stream || !request.returnsTokens ? [] : ids,
    id_slot: slotIndex,
    stop: true,
    model: context.modelPath,
    tokens_predicted: ids.length,
    tokens_evaluated: promptLength,
    generation_settings: request.samplingParams,
    prompt: context.detokenize(request.inputIds),
    has_new_line: false,
    truncated: isFull,
    ...encodeStop(sequence, { ids, context }),
    tokens_cached: promptLength + ids.length - 1,
    timings: { cache_n: cachedTokenCount, prompt_n: promptLength - cachedTokenCount },
    ...(!request.stream && encodeProbabilities(sequence, { ids, logprobs }, context)),
  };
  const { responseFields: fields } = request;
  if (fields.length === 0) return whole;
  return Object.fromEntries(Object.entries(whole).filter(([name]) => fields.includes(name)));
}

/**
 * Encodes one token of a stream. Returns `undefined` for a token that ends inside a character,
 * which is not sent.
 */
export function encodeChunk(
  sequence: Sequence,
  { index, tokenIndex, context }: { index: number; tokenIndex: number; context: ReplyContext },
): Record<string, unknown> | undefined {
  const { ids, logprobs } = toSampled(sequence);
  const id = ids[tokenIndex];
  if (id === undefined || context.partialIds.includes(id)) return undefined;
  const one = { ids: [id], logprobs: [logprobs[tokenIndex]] };
  return {
    index,
    content: context.detokenize([id]),
    tokens: [id],
    stop: false,
    id_slot: -1,
    tokens_predicted: tokenIndex + 1,
    tokens_evaluated: sequence.request.inputIds.length,
    ...encodeProbabilities(sequence, one, context),
  };
}

function encodeStop(
  { finish }: Sequence,
  { ids, context }: { ids: readonly number[]; context: ReplyContext },
): Record<string, unknown> {
  if (finish?.type === "stop" && typeof finish.matched === "string") {
    return { stop_type: "word", stopping_word: finish.matched };
  }
  const isEnd = context.endTokenIds.includes(ids.at(-1) ?? -1);
  return { stop_type: isEnd ? "eos" : "limit", stopping_word: "" };
}

/**
 * Encodes the tokens with their probabilities. Omits tokens that end inside a character, and tokens that complete a
 * stop string. Omits the whole list if no token has a probability.
 */
function encodeProbabilities(
  sequence: Sequence,
  { ids, logprobs }: SampledTokens,
  context: ReplyContext,
): Record<string, unknown> {
  const { shownCount } = sequence.request;
  if (shownCount === 0) return {};
  const { finish } = sequence;
  const completesStop = finish?.type === "stop" && typeof finish.matched === "string";
  const entries = ids.flatMap((id, index) => {
    if (context.partialIds.includes(id)) return [];
    if (completesStop && index === sequence.outputIds.length - 1) return [];
    const token = describeToken(id, context);
    const logprob = toJsonNumber(context.speculates ? 0 : logprobs[index]);
    const top = context.speculates ? [] : listTop(sequence, { id, logprob, context });
    return [{ ...token, logprob, top_logprobs: top }];
  });
  return entries.length === 0 ? {} : { completion_probabilities: entries };
}

/**
 * Lists the most likely tokens. After the prompt of a forced token, lists the policy's own token.
 */
function listTop(
  { request, outputIds, outputLogprobs }: Sequence,
  { id, logprob, context }: { id: number; logprob: unknown; context: ReplyContext },
): unknown[] {
  const { forcedId, shownCount } = request;
  const own = { ...describeToken(id, context), logprob };
  const sampledId = outputIds[0];
  if (forcedId === undefined || sampledId === undefined) return [own];
  if (context.unlikelyIds.includes(sampledId) && shownCount <= LIKELY_COUNT) return [own];
  const shown = { ...describeToken(sampledId, context), logprob: toJsonNumber(outputLogprobs[0]) };
  return [shown, own].slice(0, shownCount);
}

function describeToken(id: number, { detokenize }: ReplyContext): Record<string, unknown> {
  const token = detokenize([id]);
  return { id, token, bytes: [...Buffer.from(token, "utf8")] };
}

/** Returns a logprob as the server's JSON has it: `null` for NaN. Minus infinity never occurs. */
function toJsonNumber(logprob: number | undefined): number | null {
  if (logprob === undefined || Number.isNaN(logprob)) return null;
  return Math.max(logprob, LOGPROB_FLOOR);
}

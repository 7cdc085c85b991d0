import type { ColumnModel, DrawnToken } from "../shared/column-model.ts";
import type { FinishReason, LiveSequence } from "../shared/request-scheduler.ts";
import type { ReleaseTraits } from "./releases.ts";
import type { DecodedRequest } from "./request-decoding.ts";
import { encodeMask, encodeRoutes, type ServedColumns } from "./served-columns.ts";
import type { VllmSequenceRequest } from "./vllm-sequence-request.ts";

/** The facts that a reply depends on. */
export interface ReplyContext {
  readonly traits: ReleaseTraits;
  readonly modelName: string;
  readonly eosTokenId: number;
  readonly columns: ServedColumns;
  /** The kind of the reported logprobs. */
  readonly logprobsMode: "raw_logprobs" | "processed_logprobs";
  /** True if `usage` has the number of cached prompt tokens. */
  readonly reportsCachedTokens: boolean;
  /** Returns the text of ids. */
  readonly detokenize: (ids: readonly number[]) => string;
}

type Sequence = LiveSequence<VllmSequenceRequest>;

/** The options for encoding a choice. */
interface ChoiceOptions {
  readonly decoded: DecodedRequest;
  readonly context: ReplyContext;
  /** The position of a missing logprob. */
  readonly missingAt?: number | undefined;
}

/** A value that JSON cannot represent. The server's JSON writer throws on it. */
export class NotJsonCompliant extends Error {}

/** The value for minus infinity. */
const LOGPROB_FLOOR = -9_999;

/**
 * Encodes the reply to a request, or the frame with its tokens from `since` on.
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/protocol.py
 * (GenerateResponse) and vllm/entrypoints/openai/completion/protocol.py (CompletionResponse).
 * @throws NotJsonCompliant if a logprob is NaN.
 */
export function encodeReply(
  sequences: readonly Sequence[],
  options: ChoiceOptions,
): Record<string, unknown> {
  const { decoded, context } = options;
  const { api, replyId } = decoded;
  const choices = sequences.map((sequence, index) =>
    encodeChoice(sequence, { index, since: 0 }, options),
  );
  const usage = encodeUsage(sequences, context);
  const model = context.modelName;
  const transfers = { kv_transfer_params: null, ec_transfer_params: null };
  if (api === "generate") {
    const head = { request_id: replyId, model, created: 0 };
    const promptLogprobs = encodePromptLogprobs(sequences[0], context);
    const reply = { ...head, choices, usage, prompt_logprobs: promptLogprobs, ...transfers };
    if (!context.traits.hasTokensOutput) return reply;
    return { ...reply, ...TOKENS_OUTPUT, ...encodePrompt(sequences[0], decoded) };
  }
  return {
    id: replyId,
    object: "text_completion",
    created: 0,
    model,
    choices,
    service_tier: null,
    system_fingerprint: toFingerprint(context),
    usage,
    ...transfers,
    metrics: null,
  };
}

/** Returns the build's name in completions. */
export function toFingerprint({ traits }: Pick<ReplyContext, "traits">): string | null {
  return traits.hasTokensOutput ? "vllm-0.0.0+test" : null;
}

/** Members of an ids-only reply that this server cannot fill. */
const TOKENS_OUTPUT = {
  prompt_token_id_logprobs: null,
  prompt_token_ids: null,
  mm_placeholders: null,
  metrics: null,
  output_mode: "tokens",
};

/**
 * Returns the prompt if an ids-only request asks for it. A stream has it in its first frame only.
 */
export function encodePrompt(
  sequence: Sequence | undefined,
  { listsPrompt }: DecodedRequest,
): Record<string, unknown> {
  return listsPrompt && sequence !== undefined
    ? { prompt_token_ids: sequence.request.inputIds }
    : {};
}

/** Returns the numbers of prompt and sampled tokens. */
export function encodeUsage(
  sequences: readonly Sequence[],
  { reportsCachedTokens }: Pick<ReplyContext, "reportsCachedTokens">,
): Record<string, unknown> {
  const [first] = sequences;
  const prompt = first?.request.inputIds.length ?? 0;
  const completion = sequences.reduce((sum, { outputIds }) => sum + outputIds.length, 0);
  return {
    prompt_tokens: prompt,
    total_tokens: prompt + completion,
    completion_tokens: completion,
    prompt_tokens_details: reportsCachedTokens
      ? { cached_tokens: first?.cachedTokenCount ?? 0 }
      : null,
    completion_tokens_details: null,
  };
}

/** Encodes one sequence: its tokens from `since` on. */
export function encodeChoice(
  sequence: Sequence,
  { index, since }: { index: number; since: number },
  { decoded, context, missingAt }: ChoiceOptions,
): Record<string, unknown> {
  const { request, finish, outputIds } = sequence;
  const { model } = context.columns;
  const ids = outputIds.slice(since);
  const logprobs = ids.map((_, offset) =>
    since + offset === missingAt ? undefined : toLogprob(sequence, since + offset, context),
  );
  const finishReason = finish?.type ?? null;
  if (decoded.api === "generate") {
    const { hasTokensOutput } = context.traits;
    const encode = hasTokensOutput ? encodeNumbered : encodeContent;
    const topCount = request.logprobCount ?? 0;
    const tops = ids.map((id, offset) => {
      const logprob = logprobs[offset];
      if (logprob === undefined) return [];
      return topsOf({ id, logprob, index: since + offset }, { count: topCount, model });
    });
    return {
      index,
      logprobs: request.logprobCount === undefined ? null : encode(ids, logprobs, tops),
      finish_reason: finishReason,
      token_ids: ids,
      routed_experts: encodeRoutes(sequence, context.columns),
      sampling_mask: encodeMask(sequence, since, context.columns),
      ...(hasTokensOutput && {
        stop_reason: toStopReason(finish, context),
        weight_versions: finish === undefined ? null : sequence.versionSpans,
      }),
    };
  }
  return {
    index,
    text: encodeText(sequence, { ids, context }),
    logprobs:
      request.logprobCount === undefined
        ? null
        : encodeColumns(outputIds, { since, logprobs, decoded, context }),
    finish_reason: finishReason,
    stop_reason: toStopReason(finish, context),
    token_ids: decoded.returnTokenIds ? ids : null,
    prompt_logprobs: encodePromptLogprobs(sequence, context),
    prompt_token_ids: decoded.returnTokenIds && since === 0 ? request.inputIds : null,
    routed_experts: encodeRoutes(sequence, context.columns),
  };
}

/** Returns the logprob as the reply contains it; `undefined` if the reply leaves it out. */
function toLogprob(
  { request, outputIds, outputLogprobs }: Sequence,
  index: number,
  { logprobsMode, columns: { keptTokens, model } }: ReplyContext,
): number | undefined {
  const logprob = outputLogprobs[index];
  if (logprob === undefined) return undefined;
  refuseNan(logprob);
  const { temperature, top_k: topK } = request.samplingParams;
  if (keptTokens !== undefined) {
    return model.kept({ id: outputIds[index]!, logprob, index }, Number(topK)).logprob;
  }
  const isOnlyCandidate = temperature !== 0 && topK === 1;
  if (logprobsMode === "processed_logprobs" && isOnlyCandidate) return 0;
  return Math.max(logprob, LOGPROB_FLOOR);
}

/**
 * Throws for a NaN, which JSON cannot represent.
 * @throws NotJsonCompliant
 */
function refuseNan(logprob: number): void {
  if (!Number.isNaN(logprob)) return;
  throw new NotJsonCompliant("Out of range float values are not JSON compliant: nan");
}

/**
 * Returns the score of each prompt token, if requested, and the most likely alternatives. No
 * sampling transform applies to them in any mode.
 * **Source:** vllm-project/vllm vllm/v1/worker/gpu/sample/prompt_logprob.py and vllm/logprobs.py.
 */
function encodePromptLogprobs(
  sequence: Sequence | undefined,
  { detokenize, columns: { model } }: ReplyContext,
): readonly unknown[] | null {
  const logprobs = sequence?.inputLogprobs;
  if (sequence === undefined || logprobs === undefined) return null;
  const { inputIds, samplingParams } = sequence.request;
  const count = Math.max(0, Number(samplingParams["prompt_logprobs"]));
  return inputIds.map((id, position) => {
    if (position === 0) return null;
    const logprob = logprobs[position] ?? 0;
    refuseNan(logprob);
    const tops = count === 0 ? [] : model.promptTops({ id, logprob, position }, count);
    const ranked = tops.map((top, index) => ({ ...top, rank: index + 1 }));
    const own = ranked.find((top) => top.id === id) ?? { id, logprob, rank: tops.length + 1 };
    return Object.fromEntries(
      [own, ...ranked].map((token) => [
        token.id,
        {
          logprob: Math.max(token.logprob, LOGPROB_FLOOR),
          rank: token.rank,
          decoded_token: detokenize([token.id]),
        },
      ]),
    );
  });
}

/** A token of the list of the most probable ones. */
interface RankedToken {
  readonly id: number;
  readonly logprob: number;
  readonly rank: number;
}

/** Returns the sampled token, and then the other most probable ones: `count` tokens together, and at least one. */
function topsOf(
  token: DrawnToken,
  { count, model }: { count: number; model: ColumnModel },
): readonly RankedToken[] {
  const tops = count === 0 ? [] : model.tops(token, count);
  const place = tops.findIndex(({ id }) => id === token.id);
  const ranked = tops.map((top, index) => ({ ...top, rank: index + 1 }));
  const sampledRank = place < 0 ? tops.length + 1 : place + 1;
  const { id, logprob } = token;
  const others = ranked.filter((top) => top.id !== id);
  return [{ id, logprob, rank: sampledRank }, ...others.slice(0, Math.max(0, count - 1))];
}

/** Encodes numeric ids with their logprobs. */
function encodeNumbered(
  ids: readonly number[],
  logprobs: readonly (number | undefined)[],
  tops: readonly (readonly RankedToken[])[],
): Record<string, unknown> {
  return {
    content: ids.map((id, index) => {
      const logprob = logprobs[index];
      if (logprob === undefined) {
        return { token_id: id, logprob: LOGPROB_FLOOR, rank: null, top_logprobs: [] };
      }
      const [first, ...others] = (tops[index] ?? []).map(({ id: token_id, ...top }) => ({
        token_id,
        ...top,
      }));
      return { ...first, top_logprobs: [first, ...others] };
    }),
  };
}

function encodeContent(
  ids: readonly number[],
  logprobs: readonly (number | undefined)[],
  tops: readonly (readonly RankedToken[])[],
): Record<string, unknown> {
  return {
    content: ids.map((id, index) => {
      const token = `token_id:${id}`;
      const logprob = logprobs[index];
      if (logprob === undefined) {
        return { token, logprob: LOGPROB_FLOOR, bytes: null, top_logprobs: [] };
      }
      const [first, ...others] = (tops[index] ?? []).map((top) => ({
        token: `token_id:${top.id}`,
        logprob: top.logprob,
        bytes: null,
      }));
      return { ...first, top_logprobs: [first, ...others] };
    }),
  };
}

/** Encodes the ids from `since` on, with their `logprobs`. Positions count from the first id. */
function encodeColumns(
  outputIds: readonly number[],
  {
    since,
    logprobs,
    decoded,
    context,
  }: {
    since: number;
    logprobs: readonly (number | undefined)[];
    decoded: DecodedRequest;
    context: ReplyContext;
  },
): Record<string, unknown> {
  const all = outputIds.map((id) =>
    decoded.returnTokensAsTokenIds ? `token_id:${id}` : context.detokenize([id]),
  );
  let offset = 0;
  const offsets = all.map((token) => {
    const start = offset;
    offset += token.length;
    return start;
  });
  const tokens = all.slice(since);
  return {
    text_offset: offsets.slice(since),
    token_logprobs: logprobs.map((logprob) => logprob ?? null),
    tokens,
    top_logprobs: tokens.map((token, index) => {
      const logprob = logprobs[index];
      return logprob === undefined ? null : { [token]: logprob };
    }),
  };
}

/**
 * Returns the text without the stop token or stop string, unless the request keeps it. The ids
 * always include it.
 */
function encodeText(
  { request, finish }: Sequence,
  { ids, context }: { ids: readonly number[]; context: ReplyContext },
): string {
  const isKept = request.samplingParams["include_stop_str_in_output"] === true;
  if (isKept || finish?.type !== "stop") return context.detokenize(ids);
  if (typeof finish.matched === "number") return context.detokenize(ids.slice(0, -1));
  const text = context.detokenize(ids);
  const cut = text.lastIndexOf(finish.matched);
  return cut < 0 ? text : text.slice(0, cut);
}

/** Returns the stop, unless it is the model's own end token. */
function toStopReason(
  finish: FinishReason | undefined,
  { eosTokenId }: ReplyContext,
): number | string | null {
  if (finish?.type !== "stop" || finish.matched === eosTokenId) return null;
  return finish.matched;
}

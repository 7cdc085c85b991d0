import type { ServerFault } from "../server-fault.ts";
import { watchDisconnect } from "../shared/disconnect.ts";
import { answerWithFault, breakStream, sendReply, toForcedEnd } from "../shared/faults.ts";
import type { HttpExchange } from "../shared/http-exchange.ts";
import type { ForcedEnd, LiveSequence } from "../shared/request-scheduler.ts";
import type { ServerCore } from "../shared/server-core.ts";
import type { VllmError } from "./error-replies.ts";
import { RequestRefused, badRequest, encodeError, sendError } from "./error-replies.ts";
import type { ReplyContext } from "./reply-encoding.ts";
import {
  NotJsonCompliant,
  encodeChoice,
  encodePrompt,
  encodeReply,
  encodeUsage,
  toFingerprint,
} from "./reply-encoding.ts";
import type { DecodedRequest, DecodingContext } from "./request-decoding.ts";
import type { VllmSequenceRequest } from "./vllm-sequence-request.ts";

/** The parts that sampling routes need. */
export interface SamplingContext
  extends ReplyContext, DecodingContext, ServerCore<VllmSequenceRequest> {
  readonly contextLength: number;
  readonly detokenize: (ids: readonly number[]) => string;
  /** The names (`rid`) of unfinished sequences, by the id of their request. A client aborts sequences by this id. */
  readonly liveNames: Map<string, Set<string>>;
}

type Sequence = LiveSequence<VllmSequenceRequest>;

/** Serves one request of the ids-only API or the completions API. */
export async function serveSampling(
  exchange: HttpExchange,
  {
    decode,
    context,
  }: {
    decode: (exchange: HttpExchange, context: DecodingContext) => DecodedRequest;
    context: SamplingContext;
  },
): Promise<void> {
  const decoded = decodeOrRefuse(exchange, () => decode(exchange, context));
  const first = decoded?.requests[0];
  if (decoded === undefined || first === undefined) return;
  const routingKey = decoded.sessionId;
  const recordEnds = decoded.requests.map((request) => context.log.add(request, routingKey));
  const fault = context.faults.next({ inputIds: first.inputIds, rid: first.rid, routingKey });
  if (answerWithFault(exchange, fault)) return;
  const sequences = decoded.requests.map((request) =>
    context.scheduler.admit(request, {
      routingKey,
      cachedTokenCount: countCached(request, { routingKey, context }),
      forcedEnd: toEnd(fault, request),
    }),
  );
  trackNames(sequences, context);
  watchDisconnect(exchange, sequences, context);
  if (decoded.stream) streamReply(exchange, sequences, { decoded, context, fault });
  await Promise.all(sequences.map(({ done }) => done));
  for (const [index, sequence] of sequences.entries()) {
    spoilLogprobs(sequence, fault);
    recordEnds[index]?.(sequence);
  }
  if (!decoded.stream) answer(exchange, sequences, { decoded, context, fault });
}

/**
 * Returns the number of cached ids. 0 if the prompt is scored, because the cache is then not read.
 */
function countCached(
  { inputIds, scoresInput }: VllmSequenceRequest,
  { routingKey, context }: { routingKey: string | undefined; context: SamplingContext },
): number {
  const count = context.cache.take(routingKey, inputIds);
  return scoresInput === true ? 0 : count;
}

function decodeOrRefuse(
  exchange: HttpExchange,
  decode: () => DecodedRequest,
): DecodedRequest | undefined {
  try {
    return decode();
  } catch (error) {
    if (!(error instanceof RequestRefused)) throw error;
    sendError(exchange, error.error);
    return undefined;
  }
}

/**
 * Returns the end that a fault forces. A NaN does not end the turn: encoding the reply fails later.
 */
function toEnd(
  fault: ServerFault | undefined,
  request: VllmSequenceRequest,
): ForcedEnd | undefined {
  return fault?.kind === "nan-happened" ? undefined : toForcedEnd(fault, request);
}

function spoilLogprobs({ outputLogprobs }: Sequence, fault: ServerFault | undefined): void {
  if (fault?.kind === "nan-happened") outputLogprobs[fault.afterTokens] = Number.NaN;
}

function trackNames(
  sequences: readonly Sequence[],
  { liveNames }: Pick<SamplingContext, "liveNames">,
): void {
  for (const { request, done } of sequences) {
    const { externalId, rid } = request;
    const names = liveNames.get(externalId) ?? new Set();
    liveNames.set(externalId, names.add(rid));
    void done.then(() => {
      names.delete(rid);
      if (names.size === 0) liveNames.delete(externalId);
    });
  }
}

/** Returns the failure of a sequence, if any: a policy's complaint, or a fault. */
function failureOf(sequences: readonly Sequence[]): VllmError | undefined {
  for (const { finish } of sequences) {
    if (finish?.type !== "abort" || typeof finish.status_code !== "number") continue;
    const { status_code: status, message } = finish;
    return status === 400 ? badRequest(message) : { status, message, type: "InternalServerError" };
  }
  return undefined;
}

interface AnswerOptions {
  readonly decoded: DecodedRequest;
  readonly context: SamplingContext;
  readonly fault?: ServerFault | undefined;
}

function answer(
  exchange: HttpExchange,
  sequences: readonly Sequence[],
  { decoded, context, fault }: AnswerOptions,
): void {
  const failure = failureOf(sequences);
  if (failure !== undefined) {
    sendError(exchange, failure);
    return;
  }
  try {
    const missingAt = fault?.kind === "null-logprob" ? fault.position : undefined;
    sendReply(exchange, encodeReply(sequences, { decoded, context, missingAt }), fault);
  } catch (error) {
    if (!(error instanceof NotJsonCompliant)) throw error;
    sendError(exchange, badRequest(error.message));
  }
}

/**
 * Sends server-sent events with the new tokens, and then `[DONE]`. The ids-only API sends no events without tokens, so
 * an aborted sequence may end without a reason. A stream with routes ends with an event that has the routes and no
 * tokens.
 */
function streamReply(
  exchange: HttpExchange,
  sequences: readonly Sequence[],
  { decoded, context, fault }: AnswerOptions,
): void {
  const { response } = exchange;
  response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
  response.flushHeaders();
  const sendEvent = (value: unknown): void => {
    response.write(`data: ${JSON.stringify(value)}\n\n`);
  };
  let openCount = sequences.length;
  for (const [index, sequence] of sequences.entries()) {
    let since = 0;
    let isBroken = false;
    sequence.onProgress = () => {
      if (isBroken) return;
      const isFinished = sequence.state === "finished";
      const hasTokens = sequence.outputIds.length > since;
      const isAborted = isFinished && sequence.finish?.type === "abort" && sequence.hasRun;
      const hasRoutes = isAborted && context.columns.routedExperts !== undefined;
      if (hasTokens || hasRoutes || decoded.api === "completions") {
        const choice = encodeChoice(sequence, { index, since }, { decoded, context });
        const prompt = since === 0 ? encodePrompt(sequence, decoded) : {};
        const chunk = { ...toChunk(choice, decoded, context), ...prompt };
        sendEvent(fault?.kind === "alter" ? fault.alter(chunk) : chunk);
        since = sequence.outputIds.length;
      }
      isBroken = breakStream(exchange, fault, since);
      if (isBroken) return;
      if (!isFinished) return;
      openCount -= 1;
      if (openCount > 0) return;
      const failure = failureOf(sequences);
      if (failure !== undefined) sendEvent(encodeError(failure));
      else if (decoded.includeUsage) {
        const usage = encodeUsage(sequences, context);
        const last = { ...toChunkHead(decoded, context), choices: [], usage };
        sendEvent(fault?.kind === "alter" ? fault.alter(last) : last);
      }
      response.end("data: [DONE]\n\n");
    };
    // A request that is aborted in the queue ends before it is streamed.
    if (sequence.state === "finished") sequence.onProgress();
  }
}

/**
 * Converts a choice to an event of a stream: removes the members that only complete replies have.
 */
function toChunk(
  choice: Record<string, unknown>,
  decoded: DecodedRequest,
  context: SamplingContext,
): Record<string, unknown> {
  const head = toChunkHead(decoded, context);
  if (decoded.api === "generate") return { ...head, choices: [choice], usage: null };
  const { prompt_logprobs: _logprobs, routed_experts: _experts, ...rest } = choice;
  const fingerprint = toFingerprint(context);
  // Only the last event names the build.
  const isNamed = fingerprint !== null && rest["finish_reason"] !== null;
  return { ...head, choices: [rest], ...(isNamed && { system_fingerprint: fingerprint }) };
}

function toChunkHead(
  { api, replyId }: DecodedRequest,
  { modelName, traits }: SamplingContext,
): Record<string, unknown> {
  if (api === "generate") {
    return { request_id: replyId, ...(traits.hasTokensOutput && { output_mode: "tokens" }) };
  }
  return { id: replyId, object: "text_completion", created: 0, model: modelName };
}

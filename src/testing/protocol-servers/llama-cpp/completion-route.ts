import type { ServerFault } from "../server-fault.ts";
import { watchDisconnect } from "../shared/disconnect.ts";
import { answerWithFault, sendReply, toForcedEnd } from "../shared/faults.ts";
import type { HttpExchange } from "../shared/http-exchange.ts";
import type { LiveSequence } from "../shared/request-scheduler.ts";
import type { ServerCore } from "../shared/server-core.ts";
import type { LlamaCppError } from "./error-replies.ts";
import { JSON_UTF8, RequestRefused, sendError } from "./error-replies.ts";
import type { ReplyContext } from "./reply-encoding.ts";
import { encodeChunk, encodeReply, toSampled } from "./reply-encoding.ts";
import type {
  DecodedCompletion,
  DecodingContext,
  LlamaCppSequenceRequest,
} from "./request-decoding.ts";
import { decodeCompletion } from "./request-decoding.ts";

/** The parts that `/completion` needs. */
export interface CompletionContext
  extends ReplyContext, DecodingContext, ServerCore<LlamaCppSequenceRequest> {
  readonly contextLength: number;
  readonly endTokenIds: readonly number[];
  readonly detokenize: (ids: readonly number[]) => string;
  /** Returns the slot for a request that names none. */
  readonly nextSlot: () => number;
  /** True if a text that ends inside a character is an error. */
  readonly refusesCutText: boolean;
}

type Sequence = LiveSequence<LlamaCppSequenceRequest>;

/** Serves one `/completion` request. */
export async function serveCompletion(
  exchange: HttpExchange,
  context: CompletionContext,
): Promise<void> {
  const decoded = decodeOrRefuse(exchange, context);
  const [first] = decoded?.requests ?? [];
  if (decoded === undefined || first === undefined) return;
  const session = exchange.request.headers["x-session-id"];
  const routingKey = typeof session === "string" ? session : undefined;
  const recordEnds = decoded.requests.map((request) => context.log.add(request, routingKey));
  const { inputIds, rid } = first;
  const fault = context.faults.next({ inputIds, rid, routingKey });
  if (answerWithFault(exchange, fault)) return;
  const slotted = decoded.requests.map((request) => ({
    sequence: context.scheduler.admit(request, {
      routingKey,
      cachedTokenCount: context.cache.take(routingKey, request.inputIds),
      forcedEnd: toForcedEnd(fault, request),
    }),
    slotIndex: request.slotIndex ?? context.nextSlot(),
  }));
  const sequences = slotted.map(({ sequence }) => sequence);
  watchDisconnect(exchange, sequences, context);
  if (first.stream) streamReplies(exchange, slotted, context);
  await Promise.all(sequences.map(({ done }) => done));
  for (const [index, sequence] of sequences.entries()) recordEnds[index]?.(sequence);
  if (!first.stream) answer(exchange, slotted, { context, fault, isList: decoded.isList });
}

/** A sequence and the slot that replies name for it. */
interface SlottedSequence {
  readonly sequence: Sequence;
  readonly slotIndex: number;
}

function decodeOrRefuse(
  exchange: HttpExchange,
  context: CompletionContext,
): DecodedCompletion | undefined {
  try {
    return decodeCompletion(exchange.body, context);
  } catch (error) {
    if (!(error instanceof RequestRefused)) throw error;
    sendError(exchange, error.error);
    return undefined;
  }
}

interface AnswerOptions {
  readonly context: CompletionContext;
  readonly fault?: ServerFault | undefined;
  readonly isList: boolean;
}

/** Answers a request. The server has no reply for an abort, so a client that is still connected gets an error. */
function answer(
  exchange: HttpExchange,
  slotted: readonly SlottedSequence[],
  { context, fault, isList }: AnswerOptions,
): void {
  for (const { sequence } of slotted) {
    const error = errorOf(sequence, context);
    if (error === undefined) continue;
    sendError(exchange, error);
    return;
  }
  if (fault?.kind === "null-logprob") {
    for (const { sequence } of slotted) sequence.outputLogprobs[fault.position] = Number.NaN;
  }
  const replies = slotted.map(({ sequence, slotIndex }, index) =>
    encodeReply(sequence, { context, slotIndex, index }),
  );
  sendReply(exchange, isList ? replies : (replies[0] ?? {}), fault, JSON_UTF8);
}

function errorOf(sequence: Sequence, context: CompletionContext): LlamaCppError | undefined {
  const { finish, request } = sequence;
  if (finish?.type === "abort") {
    const type = finish.status_code === 400 ? "invalid_request_error" : "server_error";
    return { type, message: finish.message };
  }
  if (request.leavesTextUnparsed || !context.refusesCutText) return undefined;
  const last = toSampled(sequence).ids.at(-1) ?? -1;
  if (!context.partialIds.includes(last)) return undefined;
  const message = "The model produced output that does not match the expected Content-only format";
  return { type: "server_error", message };
}

/** Sends one server-sent event for each token, and a last one with the reason for the end. */
function streamReplies(
  { response }: HttpExchange,
  slotted: readonly SlottedSequence[],
  context: CompletionContext,
): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  const sendEvent = (value: unknown): void => {
    response.write(`data: ${JSON.stringify(value)}\n\n`);
  };
  let openCount = slotted.length;
  for (const [index, { sequence, slotIndex }] of slotted.entries()) {
    let sentCount = 0;
    sequence.onProgress = () => {
      for (; sentCount < sequence.outputIds.length; sentCount++) {
        const chunk = encodeChunk(sequence, { index, tokenIndex: sentCount, context });
        if (chunk !== undefined) sendEvent(chunk);
      }
      if (sequence.state !== "finished") return;
      sendEvent(encodeReply(sequence, { context, slotIndex, index }));
      openCount -= 1;
      if (openCount === 0) response.end();
    };
  }
}

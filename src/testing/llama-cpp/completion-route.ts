import type { ServerFault } from "../server-fault.ts";
import { watchDisconnect } from "../server/disconnect.ts";
import { answerWithFault, sendReply, toForcedEnd } from "../server/faults.ts";
import type { HttpExchange } from "../server/http-exchange.ts";
import type { LiveSequence } from "../server/request-scheduler.ts";
import type { ServerCore } from "../server/server-core.ts";
import { RequestRefused, sendError } from "./error-replies.ts";
import type { ReplyContext } from "./reply-encoding.ts";
import { encodeChunk, encodeReply, toSampled } from "./reply-encoding.ts";
import type { DecodingContext, LlamaCppSequenceRequest } from "./request-decoding.ts";
import { decodeCompletion } from "./request-decoding.ts";

/** What serving `/completion` works with. */
export interface CompletionContext
  extends ReplyContext, DecodingContext, ServerCore<LlamaCppSequenceRequest> {
  readonly contextLength: number;
  readonly endTokenIds: readonly number[];
  readonly detokenize: (ids: readonly number[]) => string;
  /** The slot for a request that asks for none. */
  readonly nextSlot: () => number;
}

type Sequence = LiveSequence<LlamaCppSequenceRequest>;

/** Serves one `/completion` request. */
export async function serveCompletion(
  exchange: HttpExchange,
  context: CompletionContext,
): Promise<void> {
  const request = decodeOrRefuse(exchange, context);
  if (request === undefined) return;
  const session = exchange.request.headers["x-session-id"];
  const routingKey = typeof session === "string" ? session : undefined;
  const recordEnd = context.log.add(request, routingKey);
  const { inputIds, rid } = request;
  const fault = context.faults.next({ inputIds, rid, routingKey });
  if (answerWithFault(exchange, fault)) return;
  const sequence = context.scheduler.admit(request, {
    routingKey,
    cachedTokenCount: context.cache.take(routingKey, inputIds),
    forcedEnd: toForcedEnd(fault, request),
  });
  watchDisconnect(exchange, [sequence], context);
  const slotIndex = request.slotIndex ?? context.nextSlot();
  if (request.stream) streamReply(exchange, sequence, { context, slotIndex });
  await sequence.done;
  recordEnd(sequence);
  if (!request.stream) answer(exchange, sequence, { context, slotIndex, fault });
}

function decodeOrRefuse(
  exchange: HttpExchange,
  context: CompletionContext,
): LlamaCppSequenceRequest | undefined {
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
  readonly slotIndex: number;
  readonly fault?: ServerFault | undefined;
}

/** The server has no word for an abort: whoever is there to be told is told of an error. */
function answer(
  exchange: HttpExchange,
  sequence: Sequence,
  { context, slotIndex, fault }: AnswerOptions,
): void {
  const { finish, request, outputLogprobs } = sequence;
  if (finish?.type === "abort") {
    const type = finish.status_code === 400 ? "invalid_request_error" : "server_error";
    sendError(exchange, { type, message: finish.message });
    return;
  }
  const last = toSampled(sequence).ids.at(-1) ?? -1;
  if (!request.leavesTextUnparsed && context.partialIds.includes(last)) {
    const message =
      "The model produced output that does not match the expected Content-only format";
    sendError(exchange, { type: "server_error", message });
    return;
  }
  if (fault?.kind === "null-logprob") outputLogprobs[fault.position] = Number.NaN;
  sendReply(exchange, encodeReply(sequence, { context, slotIndex }), fault);
}

/** Server-sent events, one for each token, then one that says how it ended. */
function streamReply(
  { response }: HttpExchange,
  sequence: Sequence,
  { context, slotIndex }: AnswerOptions,
): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  response.flushHeaders();
  const sendEvent = (value: unknown): void => {
    response.write(`data: ${JSON.stringify(value)}\n\n`);
  };
  let sentCount = 0;
  sequence.onProgress = () => {
    for (; sentCount < sequence.outputIds.length; sentCount++) {
      const chunk = encodeChunk(sequence, { index: sentCount, context });
      if (chunk !== undefined) sendEvent(chunk);
    }
    if (sequence.state !== "finished") return;
    sendEvent(encodeReply(sequence, { context, slotIndex }));
    response.end();
  };
}

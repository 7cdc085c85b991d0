import type { ServerFault } from "../server-fault.ts";
import { watchDisconnect } from "../shared/disconnect.ts";
import type { FaultQueue } from "../shared/fault-queue.ts";
import { answerWithFault, breakStream, sendReply, toForcedEnd } from "../shared/faults.ts";
import type { HttpExchange } from "../shared/http-exchange.ts";
import { sendJson, sendText } from "../shared/http-exchange.ts";
import type { PrefixCache } from "../shared/prefix-cache.ts";
import type { RequestLog } from "../shared/request-log.ts";
import type { LiveSequence, RequestScheduler } from "../shared/request-scheduler.ts";
import { sendErrorResponse, sendValueError } from "./error-replies.ts";
import type { ReplyContext } from "./reply-encoding.ts";
import { encodeReply } from "./reply-encoding.ts";
import type { DecodedGenerate, DecodedRequest } from "./request-decoding.ts";
import { decodeGenerate } from "./request-decoding.ts";
import { RequestRefused } from "./request-refused.ts";

/** The parts that `/generate` needs. */
export interface GenerateContext extends ReplyContext {
  readonly scheduler: RequestScheduler<DecodedRequest>;
  readonly contextLength: number;
  readonly incrementalStreaming: boolean;
  /** The time until the server notices a disconnected client, in milliseconds. */
  readonly disconnectPollMs: number;
  readonly newRid: () => string;
  readonly faults: FaultQueue;
  readonly cache: PrefixCache;
  readonly log: RequestLog;
  /** The id that ends a turn, as the model defines it. */
  readonly eosTokenId: number;
  /** The number of ids. All ids are below it. */
  readonly vocabularySize: number;
  /** True after a request with an id outside the vocabulary. */
  isDead: boolean;
}

/** Serves one `/generate` request. */
export async function serveGenerate(
  exchange: HttpExchange,
  context: GenerateContext,
): Promise<void> {
  const decoded = decodeOrRefuse(exchange, context);
  if (decoded === undefined) return;
  if (
    decoded.requests.some(({ inputIds }) => inputIds.some((id) => id >= context.vocabularySize))
  ) {
    die(exchange, context);
    return;
  }
  const header = exchange.request.headers["x-smg-routing-key"];
  const routingKey = typeof header === "string" ? header : undefined;
  const [first] = decoded.requests;
  if (first === undefined) return;
  const recordEnds = decoded.requests.map((request) => context.log.add(request, routingKey));

  const fault = context.faults.next({ inputIds: first.inputIds, rid: first.rid, routingKey });
  if (answerWithFault(exchange, fault)) return;
  const forcedEnd = toForcedEnd(fault, first);
  const sequences = decoded.requests.map((request) =>
    context.scheduler.admit(request, {
      routingKey,
      cachedTokenCount: countCached(request, { routingKey, context }),
      forcedEnd,
    }),
  );
  watchDisconnect(exchange, sequences, context);
  if (decoded.stream) streamReplies(exchange, sequences, { decoded, context, fault });
  await Promise.all(sequences.map(({ done }) => done));
  for (const [index, sequence] of sequences.entries()) recordEnds[index]?.(sequence);
  if (!decoded.stream) sendReplies(exchange, sequences, { decoded, context, fault });
}

/**
 * Stops the server, as SGLang's process ends when it looks up an id outside its vocabulary. Later
 * requests get no answer. **Source:** recorded from SGLang 0.5.23.
 */
function die({ request }: HttpExchange, context: GenerateContext): void {
  context.isDead = true;
  context.scheduler.abortAll();
  request.socket.destroy();
}

/**
 * Returns the number of cached ids. Ids to score are not included, because the engine computes them
 * again.
 */
function countCached(
  { inputIds, scoresInput, logprobStartLen }: DecodedRequest,
  { routingKey, context }: { routingKey: string | undefined; context: GenerateContext },
): number {
  const count = context.cache.take(routingKey, inputIds);
  return scoresInput === true ? Math.min(count, logprobStartLen) : count;
}

function decodeOrRefuse(
  exchange: HttpExchange,
  context: GenerateContext,
): DecodedGenerate | undefined {
  const { scheduler, contextLength, newRid, traits, eosTokenId, columns } = context;
  try {
    const isLive = (rid: string): boolean => scheduler.isLive(rid);
    const decoding = { contextLength, newRid, isLive, traits, eosTokenId, columns };
    return decodeGenerate(exchange.body, decoding);
  } catch (error) {
    if (!(error instanceof RequestRefused)) throw error;
    const { style, status, message, isStream } = error;
    if (style === "text") sendJson(exchange, { error: message }, { status });
    else if (isStream && style === "value") sendStreamedError(exchange, message);
    else if (style === "value") sendValueError(exchange, message);
    else if (style === "shape") {
      sendErrorResponse(exchange, { status, message, type: "Bad Request" });
    } else sendText(exchange, message, { status, headers: { "content-type": "text/plain" } });
    return undefined;
  }
}

interface ReplyOptions {
  readonly decoded: DecodedGenerate;
  readonly context: GenerateContext;
  readonly fault?: ServerFault | undefined;
}

function sendReplies(
  exchange: HttpExchange,
  sequences: readonly LiveSequence<DecodedRequest>[],
  { decoded, context, fault }: ReplyOptions,
): void {
  for (const { finish } of sequences) {
    if (finish?.type !== "abort" || typeof finish.status_code !== "number") continue;
    const { status_code: status, message } = finish;
    if (status === 400) sendValueError(exchange, message);
    else sendErrorResponse(exchange, { status, message });
    return;
  }
  for (const sequence of sequences) spoil(sequence, fault);
  const replies = sequences.map((sequence) => encodeReply(sequence, context));
  sendReply(exchange, decoded.isList ? replies : (replies[0] ?? {}), fault);
}

/** Removes the logprob at the position that the fault names. */
function spoil({ outputLogprobs }: LiveSequence<DecodedRequest>, fault: ServerFault | undefined) {
  if (fault?.kind !== "null-logprob" || fault.position >= outputLogprobs.length) return;
  outputLogprobs[fault.position] = Number.NaN;
}

/** Returns the frame, changed by the fault if its kind is `alter`. */
function alter(frame: Record<string, unknown>, fault: ServerFault | undefined): unknown {
  return fault?.kind === "alter" ? fault.alter({ ...frame }) : frame;
}

/**
 * Sends server-sent events: a frame each time tokens arrive, then `[DONE]`. Each frame has all tokens so
 * far, unless the server sends only new ones. Failures are frames too, under HTTP 200.
 */
function streamReplies(
  exchange: HttpExchange,
  sequences: readonly LiveSequence<DecodedRequest>[],
  { decoded, context, fault }: ReplyOptions,
): void {
  const { response } = exchange;
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
  });
  response.flushHeaders();
  let openCount = sequences.length;
  for (const [index, sequence] of sequences.entries()) {
    let sent = 0;
    let isBroken = false;
    sequence.onProgress = () => {
      if (isBroken) return;
      spoil(sequence, fault);
      const since = context.incrementalStreaming ? sent : 0;
      sent = sequence.outputIds.length;
      const frame = encodeReply(sequence, context, { since });
      response.write(toEvent(decoded.isList ? { ...frame, index } : alter(frame, fault)));
      isBroken = breakStream(exchange, fault, sent);
      if (isBroken) return;
      if (sequence.state !== "finished") return;
      openCount -= 1;
      if (openCount === 0) response.end("data: [DONE]\n\n");
    };
    // A request that is aborted in the queue ends before it is streamed.
    if (sequence.state === "finished") sequence.onProgress();
  }
}

function sendStreamedError(exchange: HttpExchange, message: string): void {
  const error = { message, type: "invalid_request_error", code: 400, retryable: false };
  sendText(exchange, `${toEvent({ error })}data: [DONE]\n\n`, {
    headers: { "content-type": "text/event-stream; charset=utf-8" },
  });
}

function toEvent(value: unknown): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

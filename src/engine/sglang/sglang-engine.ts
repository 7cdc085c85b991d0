import type { ScoringHttpEngine, ScoringKind } from "../http/http-engine.ts";
import { createHttpEngine } from "../http/http-engine.ts";
import { readPieceReply } from "../http/piece-reply.ts";
import { refuseKeptTokens } from "../http/refuse-request.ts";
import { parseObject } from "../http/reply-reading.ts";
import type { SamplingProtocol } from "../http/sampling-protocol.ts";
import { toHeaderValue } from "../http/sampling-protocol.ts";
import type { Worker } from "../http/worker-set.ts";
import { readStreamedPiece } from "../http/streamed-piece.ts";
import { describeSglang } from "./describe-sglang.ts";
import { encodeGenerateBody, encodeScoreBody } from "./generate-body.ts";
import { openCutter, readReply } from "./reply-columns.ts";
import { GenerateStream } from "./generate-stream.ts";
import { createRequestAborter } from "./request-aborter.ts";
import { createRouterAborter } from "./router-aborter.ts";
import { loadOfSglang } from "./sglang-load.ts";
import { readScoreReply } from "./score-reply.ts";
import type { SglangEngineOptions } from "./sglang-options.ts";
import { toSglangSettings } from "./sglang-options.ts";

/** An SGLang server, its router, or several servers. */
export interface SglangEngine extends ScoringHttpEngine {
  readonly kind: "sglang";
}

/**
 * Connects to SGLang. Makes no request itself.
 *
 * Each turn is one `POST /generate`, streamed if the caller passes `onTokens`. If the weights
 * change during a request without an interruption, older releases report only the version at its
 * end.
 *
 * Scores are of the raw logits, because the server applies no temperature to a prompt's logprobs.
 * At temperatures other than 1 and 0, the engine can score only if its reported logprobs are `raw`
 * too.
 *
 * @throws UsageError for options that cannot be used.
 */
export function createSglangEngine(options: SglangEngineOptions): SglangEngine {
  const settings = toSglangSettings(options);
  const aborter = createRequestAborter(settings);
  const routerAborter = createRouterAborter(settings);
  /** Servers that counted a wrong number of prompt tokens. Their replies must list the prompt. */
  const miscounting = new WeakSet<Worker>();
  const protocol: SamplingProtocol = {
    samplePiece: async (piece, exchange) => {
      const { stream, post, worker, wireId } = exchange;
      const listsPrompt = miscounting.has(worker);
      // In a stream, every frame would list the prompt.
      const frames = stream && !listsPrompt ? new GenerateStream(piece, stream) : undefined;
      const refused = refuseKeptTokens(piece, { allowsGreedy: true });
      if (refused !== undefined) return refused;
      const cutter = openCutter(piece);
      const reply = await readStreamedPiece(exchange, {
        ask: () =>
          post({
            path: "/generate",
            headers: { "x-smg-routing-key": toHeaderValue(piece.turn.sessionId) },
            body: encodeGenerateBody(piece, { wireId, stream: frames !== undefined, listsPrompt }),
            ...(frames && { onEvent: (data) => frames.take(data) }),
            cutter,
          }),
        async read(text) {
          if (frames === undefined || text !== "") {
            return await readReply(parseObject(text), piece, cutter);
          }
          if (frames.failed !== undefined) return frames.failed;
          const complete = frames.end();
          return complete && (await readReply(complete, piece, cutter));
        },
      });
      if (reply.type === "failed" && reply.isMiscounted === true) miscounting.add(worker);
      return reply;
    },
    abortRequest: aborter.abortRequest,
    cutShort: async (worker, wireId) =>
      (await aborter.abortRequest(worker, wireId)) ||
      (settings.mode !== "direct" && (await routerAborter.abortRequest(worker, wireId))),
  };
  const scoring: ScoringKind = {
    async scoreIds(piece, { post, wireId }) {
      const outcome = await post({
        path: "/generate",
        headers: { "x-smg-routing-key": toHeaderValue(piece.sessionId) },
        body: encodeScoreBody(piece, { wireId }),
      });
      if (outcome.type !== "reply" || outcome.status !== 200) {
        return { type: "unanswered", outcome };
      }
      return readPieceReply(() => readScoreReply(outcome.text, piece));
    },
    findConvention: async () => settings.logprobConvention,
  };
  return createHttpEngine("sglang", settings, (closing) => ({
    protocol,
    scoring,
    close: routerAborter.close,
    load: (worker, { signal }) => {
      const { mode } = settings;
      return loadOfSglang(worker, {
        settings,
        signal,
        closing,
        mode,
        expected: "an SGLang server",
      });
    },
    async describe(workers, { signal }) {
      const { description, isRouter } = await describeSglang(workers, {
        settings,
        signal,
        closing,
      });
      if (isRouter) aborter.disable();
      return description;
    },
  }));
}

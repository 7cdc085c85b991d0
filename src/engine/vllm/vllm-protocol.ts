import { callControl } from "../http/control-call.ts";
import type { HttpOutcome, HttpReply } from "../http/http-transport.ts";
import type { FailedReply, PieceReply, ScoreReply } from "../http/piece-reply.ts";
import { readPieceReply } from "../http/piece-reply.ts";
import type { PieceRequest, ScorePiece } from "../http/piece-request.ts";
import type {
  PieceExchange,
  SamplingProtocol,
  ScoringProtocol,
  Unanswered,
} from "../http/sampling-protocol.ts";
import { toHeaderValue } from "../http/sampling-protocol.ts";
import { refuseKeptTokens } from "../http/refuse-request.ts";
import { parseObject } from "../http/reply-reading.ts";
import { readStreamedPiece } from "../http/streamed-piece.ts";
import type { Worker } from "../http/worker-set.ts";
import { readVllmReply } from "./piece-reading.ts";
import type { PolicyVersions } from "./policy-versions.ts";
import { createPolicyVersions } from "./policy-versions.ts";
import { readPromptLogprobs } from "./prompt-logprobs.ts";
import {
  isDisabled,
  isNanRefusal,
  lacksModel,
  lacksPath,
  leavesNoRoom,
  needsMask,
  refuseColumns,
  refuseDisabled,
  refuseFullContext,
  refuseModel,
  refuseNan,
  refuseAlteredTemperature,
  refuseUnbounded,
} from "./refusals.ts";
import { createRequestAborter } from "./request-aborter.ts";
import { openCutter, readReply, type ColumnCutter } from "./reply-columns.ts";
import { VllmReplyStream } from "./reply-stream.ts";
import { isCutStream, lastVersion, namesVersions, withVersion } from "./reply-versions.ts";
import { encodeCompletionsBody, encodeGenerateBody } from "./request-body.ts";
import { readServedModels } from "./served-models.ts";
import type { VllmApi, VllmSettings } from "./vllm-options.ts";

/** The sampling and scoring requests of vLLM servers, with the known facts about each server. */
interface VllmProtocol extends SamplingProtocol, ScoringProtocol {
  readonly versionsOf: (worker: Worker) => PolicyVersions;
  /** Returns a warning if a server lacks the preferred API. */
  readonly warningOf: (worker: Worker) => string | undefined;
}

/** The known facts about one address. */
interface ServerState {
  api: VllmApi;
  /** True if the server has `/inference/v1/generate`, but it is switched off. */
  isDisabled: boolean;
  /** True if the replies report the version of each token. */
  reportsSpans: boolean;
  /**
   * True if a reply counted a wrong number of prompt tokens. Further replies must list the prompt.
   */
  isMiscounting: boolean;
  /** The last version that a reply named. */
  spanVersion: string;
  readonly versions: PolicyVersions;
  readonly abort: (wireId: string) => Promise<boolean>;
}

/** The readers of one reply. */
interface ReplyReaders {
  readonly chunks?: VllmReplyStream | undefined;
  readonly cutter?: ColumnCutter | undefined;
}

const DISABLED_WARNING =
  "the server was started without /inference/v1/generate, so turns go to /v1/completions, whose " +
  "replies name no version of the policy; start `vllm serve` with --enable-scale-out";

/** Maximum age of a reading of the policy version when a request is sent, in milliseconds. */
const VERSION_AGE_MS = 500;

/**
 * Creates the protocol.
 *
 * The ids-only replies of 0.32 and newer report the version of each token. Other replies report
 * none, so the version comes from `/weight_info`:
 *
 * - A finished piece gets the version that the server reports right after it. A request that
 *   arrived during a pause is sampled by the version after the pause.
 * - An interrupted piece gets the version from before the request, because the interruption starts
 *   the update.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/serve/dev/rlhf/api_router.py (pause, abort).
 */
export function createVllmProtocol(settings: VllmSettings, closing: AbortSignal): VllmProtocol {
  const states = new Map<Worker, ServerState>();
  const { model } = settings;

  function stateOf(worker: Worker): ServerState {
    let state = states.get(worker);
    if (state === undefined) {
      const versions = createPolicyVersions({ worker, settings, closing });
      const api = settings.api === "completions" ? "completions" : "generate";
      const abort = createRequestAborter(worker, settings);
      const initial = { isDisabled: false, reportsSpans: false, isMiscounting: false };
      state = { api, ...initial, spanVersion: "", versions, abort };
      states.set(worker, state);
    }
    return state;
  }

  async function samplePiece(
    piece: PieceRequest,
    exchange: PieceExchange,
  ): Promise<PieceReply | Unanswered> {
    const state = stateOf(exchange.worker);
    const hasColumns = piece.turn.columns !== undefined;
    if (hasColumns && state.api === "completions") return refuseColumns();
    const refusal =
      refuseAlteredTemperature(piece) ?? refuseKeptTokens(piece, { allowsGreedy: false });
    if (refusal !== undefined) return refusal;
    const { versions } = state;
    const { signal } = exchange;
    const versionBefore = state.reportsSpans
      ? ""
      : await versions.readRecent(VERSION_AGE_MS, signal);
    if (exchange.stream !== undefined) {
      exchange.stream.policyVersion = state.reportsSpans ? state.spanVersion : versionBefore;
    }
    const answer = await askForPiece(piece, exchange);
    if (answer.type !== "replied") return answer;
    const { reply } = answer;
    if (isCutStream(reply, exchange) && state.reportsSpans) {
      return withVersion(reply, state.spanVersion);
    }
    state.reportsSpans = settings.policyVersion === undefined && namesVersions(reply);
    if (state.reportsSpans) {
      state.spanVersion = lastVersion(reply);
      return reply;
    }
    if (reply.type === "interrupted") {
      versions.expire();
      return withVersion(reply, versionBefore);
    }
    if (reply.type !== "finished") return reply;
    return withVersion(reply, await versions.readNow(signal));
  }

  /** Requests a piece and reads the answer, without its versions. */
  async function askForPiece(
    piece: PieceRequest,
    exchange: PieceExchange,
  ): Promise<{ readonly type: "replied"; readonly reply: PieceReply } | PieceReply | Unanswered> {
    const { stream } = exchange;
    let refused: PieceReply | Unanswered | undefined;
    let answeredBy: VllmApi = "generate";
    let chunks: VllmReplyStream | undefined;
    let cutter: ColumnCutter | undefined;
    const reply = await readStreamedPiece(exchange, {
      async ask() {
        const { outcome, api } = await askEither(piece, exchange, (api) => {
          chunks = stream && new VllmReplyStream(piece, { stream, api });
          cutter = openCutter(piece);
          return { chunks, cutter };
        });
        answeredBy = api;
        if (outcome.type !== "reply") return outcome;
        refused = isNanRefusal(outcome)
          ? { type: "nan-happened" }
          : await readRefusal(outcome, { exchange, piece });
        return outcome;
      },
      async read(text) {
        const options = { request: piece, api: answeredBy, cutter };
        if (chunks === undefined || text !== "") return await readReply(parseObject(text), options);
        if (chunks.failed !== undefined) return chunks.failed;
        const complete = chunks.end();
        return complete && (await readReply(complete, options));
      },
    });
    if (refused !== undefined) return refused;
    if (reply.type === "unanswered") return reply;
    if (reply.type === "failed" && reply.isMiscounted === true) {
      stateOf(exchange.worker).isMiscounting = true;
    }
    return { type: "replied", reply };
  }

  /**
   * Sends a request to the server's API, or tries the ids-only API first if the server's is
   * unknown. `open` is called with the API and returns the readers of the reply. Only the ids-only API returns columns.
   */
  async function askEither(
    piece: PieceRequest,
    exchange: PieceExchange,
    open: (api: VllmApi) => ReplyReaders = () => ({}),
  ): Promise<{ outcome: HttpOutcome; api: VllmApi }> {
    const state = stateOf(exchange.worker);
    const { api, isMiscounting: listsPrompt } = state;
    const outcome = await ask(api, { piece, exchange, model, listsPrompt, ...open(api) });
    const disabled = isDisabled(outcome);
    const lacksGenerate = api === "generate" && (disabled || lacksPath(outcome));
    if (settings.api !== "auto" || !lacksGenerate || piece.turn.columns !== undefined) {
      return { outcome, api };
    }
    state.api = "completions";
    state.isDisabled = disabled;
    return {
      outcome: await ask(state.api, { piece, exchange, model, listsPrompt, ...open(state.api) }),
      api: state.api,
    };
  }

  /**
   * Scores ids. The server returns a prompt's logprobs with a turn of one token, always for the
   * complete prompt and without the prefix cache.
   */
  async function scoreIds(
    scored: ScorePiece,
    exchange: PieceExchange,
  ): Promise<ScoreReply | Unanswered> {
    const { requestId, ids, topCount = 0, sessionId } = scored;
    const sampling = { temperature: 0, extra: { prompt_logprobs: topCount } };
    const turn = { sampling, stopTokenIds: [], sessionId };
    const piece = { requestId, inputIds: ids, maxNewTokens: 1, turn };
    const { outcome, api } = await askEither(piece, exchange);
    if (outcome.type !== "reply") return { type: "unanswered", outcome };
    if (isNanRefusal(outcome)) return refuseNan();
    const refused = await readRefusal(outcome, { exchange, piece });
    if (refused !== undefined) return refused;
    const { text } = outcome;
    return await readPieceReply<ScoreReply>(async () => {
      const reply = readVllmReply(text, { request: piece, api });
      if (reply.type === "nan-happened") return refuseNan();
      if (reply.type !== "finished") return reply;
      return { type: "scored", ...(await readPromptLogprobs(text, { ...scored, api })) };
    });
  }

  /** Translates a status other than 200. Returns `undefined` for 200. */
  async function readRefusal(
    reply: HttpReply,
    { exchange, piece }: { exchange: PieceExchange; piece: PieceRequest },
  ): Promise<FailedReply | Unanswered | undefined> {
    if (reply.status === 200) return undefined;
    if (lacksModel(reply)) return await refuseLackingModel(reply, exchange);
    const hasColumns = piece.turn.columns !== undefined;
    if (hasColumns && (isDisabled(reply) || lacksPath(reply))) return refuseColumns();
    if (isDisabled(reply)) return refuseDisabled();
    if (leavesNoRoom(reply)) return refuseFullContext(reply, piece.inputIds.length);
    if (needsMask(reply, piece)) return refuseUnbounded();
    return { type: "unanswered", outcome: reply };
  }

  async function refuseLackingModel(
    reply: HttpReply,
    { worker, signal }: PieceExchange,
  ): Promise<FailedReply> {
    return refuseModel(reply, { model, served: await listModels(worker, signal) });
  }

  async function listModels(worker: Worker, signal: AbortSignal): Promise<readonly string[]> {
    const request = { method: "GET", path: "/v1/models" } as const;
    const outcome = await callControl(worker, request, { settings, parents: [signal] });
    if (outcome.type !== "reply") return [];
    return (readServedModels(outcome.text) ?? []).map(({ id }) => id);
  }

  return {
    samplePiece,
    scoreIds,
    versionsOf: (worker) => stateOf(worker).versions,
    warningOf: (worker) => (stateOf(worker).isDisabled ? DISABLED_WARNING : undefined),
    abortRequest: (worker, wireId) => stateOf(worker).abort(wireId),
  };
}

function ask(
  api: VllmApi,
  {
    piece,
    exchange,
    model,
    listsPrompt,
    chunks,
    cutter,
  }: {
    piece: PieceRequest;
    exchange: PieceExchange;
    model: string | undefined;
    listsPrompt: boolean;
  } & ReplyReaders,
): Promise<HttpOutcome> {
  const headers = { "x-session-id": toHeaderValue(piece.turn.sessionId) };
  // A stream counts the prompt at its end, after tokens were streamed, but lists it at its start.
  const stream = chunks !== undefined;
  const { wireId } = exchange;
  const options = { wireId, model, listsPrompt: listsPrompt || stream, stream };
  const onEvent = chunks && ((data: string) => chunks.take(data));
  const further = { headers, cutter, ...(onEvent && { onEvent }) };
  return api === "generate"
    ? exchange.post({
        path: "/inference/v1/generate",
        ...further,
        body: encodeGenerateBody(piece, options),
      })
    : exchange.post({
        path: "/v1/completions",
        ...further,
        body: encodeCompletionsBody(piece, options),
      });
}

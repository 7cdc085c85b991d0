import { restBehind } from "./continued-sampling.ts";
import type {
  DiscardedSampling,
  Finish,
  GenerateRequest,
  Generation,
  GenerationPiece,
} from "./engine.ts";
import type { SampledPiece } from "./http/piece-reply.ts";
import type { PieceRequest } from "./http/piece-request.ts";
import { cannotGoOn, findWholeDemand } from "./whole-demand.ts";

/** What a turn has brought so far, and what became of its requests. */
export class TurnProgress {
  /** What keeps the turn from going on behind a part of it. */
  readonly demand: string | undefined;
  readonly #turn: GenerateRequest;
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #pieces: GenerationPiece[] = [];
  readonly #discarded: DiscardedSampling[] = [];
  #counts: Pick<Generation, "promptTokenCount" | "cachedTokenCount"> = {};
  #queueMs: number | undefined;
  #requestCount = 0;
  /** Turns that ended on NaN. */
  nanCount = 0;

  constructor(turn: GenerateRequest) {
    this.#turn = turn;
    this.demand = findWholeDemand(turn);
  }

  /**
   * The next request: the turn, or what is left of it, under a new id, by which records tell the turn's
   * requests apart.
   */
  nextPiece(): PieceRequest {
    // What cannot go on is asked for from its beginning.
    const rest = restBehind(this.#turn, this.#ids) ?? this.#turn;
    const number = this.#requestCount++;
    const { requestId } = this.#turn;
    return {
      requestId: number === 0 ? requestId : `r${number}~${requestId}`,
      inputIds: rest.promptIds,
      maxNewTokens: rest.maxNewTokens,
      turn: rest,
    };
  }

  /**
   * Keeps what a request brought; nothing where it sampled nothing. A part of a turn that cannot go on stands until
   * then: whoever cuts the turn short before takes that.
   */
  add(piece: PieceRequest, sampled: SampledPiece, finish: GenerationPiece["finish"]): void {
    if (sampled.ids.length === 0) return;
    if (this.demand !== undefined) this.#drop(cannotGoOn(this.demand));
    if (this.#pieces.length === 0) {
      const { promptTokenCount, cachedTokenCount } = sampled;
      this.#counts = {
        ...(promptTokenCount !== undefined && { promptTokenCount }),
        ...(cachedTokenCount !== undefined && { cachedTokenCount }),
      };
    }
    if (sampled.queueMs !== undefined) this.#queueMs = (this.#queueMs ?? 0) + sampled.queueMs;
    for (const id of sampled.ids) this.#ids.push(id);
    for (const logprob of sampled.logprobs) this.#logprobs.push(logprob);
    for (const [index, run] of sampled.versions.entries()) {
      const isLast = index === sampled.versions.length - 1;
      const { requestId } = piece;
      this.#pieces.push({ requestId, ...run, finish: isLast ? finish : "abort" });
    }
  }

  /** Discards what was kept, as the turn began anew. */
  #drop(reason: string): void {
    for (const piece of this.#pieces) this.discard(piece, reason, piece.tokenCount);
    for (const list of [this.#ids, this.#logprobs, this.#pieces]) list.length = 0;
  }

  /** Records a request that may have sampled what no sample will carry. */
  discard(
    { requestId }: Pick<PieceRequest, "requestId">,
    reason: string,
    tokenCount?: number,
  ): void {
    this.#discarded.push({
      requestId,
      reason,
      ...(tokenCount !== undefined && { tokenCount }),
    });
  }

  /** What is lost where the turn fails: what was discarded, and what was kept until then. */
  lost(): readonly DiscardedSampling[] {
    const kept = this.#pieces.map(({ requestId, tokenCount }) => ({
      requestId,
      reason: "the turn failed later",
      tokenCount,
    }));
    return [...kept, ...this.#discarded];
  }

  toGeneration(finish: Finish): Generation {
    return {
      outputIds: this.#ids,
      logprobs: this.#logprobs,
      finish,
      pieces: this.#pieces,
      ...this.#counts,
      ...(this.#queueMs !== undefined && { queueMs: this.#queueMs }),
      discarded: this.#discarded,
    };
  }
}

import { joinColumns, type ColumnParts } from "../columns/column-part.ts";
import { isOfAllTokens, namesOf, type ColumnName } from "../columns/column-specs.ts";
import { countRows, findLostColumn, remainingRequest } from "./continued-sampling.ts";
import type {
  DiscardedSampling,
  Finish,
  GenerateRequest,
  Generation,
  GenerationPiece,
} from "./engine.ts";
import type { SampledPiece } from "./http/piece-reply.ts";
import type { PieceRequest } from "./http/piece-request.ts";
import { notResumable, findOutputRule } from "./output-rule.ts";

/** The ids that a turn has so far, and the outcomes of its requests. */
export class TurnProgress {
  /**
   * The name of a rule on the turn's complete output, because of which the turn cannot be resumed.
   */
  readonly rule: string | undefined;
  readonly #turn: GenerateRequest;
  readonly #ids: number[] = [];
  readonly #logprobs: number[] = [];
  readonly #pieces: GenerationPiece[] = [];
  readonly #discarded: DiscardedSampling[] = [];
  #counts: Pick<Generation, "promptTokenCount" | "cachedTokenCount"> = {};
  #queueMs: number | undefined;
  #columns: ColumnParts | undefined;
  #requestCount = 0;
  /** Number of the turn's requests that ended on NaN. */
  nanCount = 0;

  constructor(turn: GenerateRequest) {
    this.#turn = turn;
    this.rule = findOutputRule(turn);
  }

  /**
   * Returns the next request: the turn, or the rest of it. Each request gets its own id for
   * records.
   */
  nextPiece(): PieceRequest {
    // A turn that cannot be resumed is requested from its start.
    const rest = remainingRequest(this.#turn, this.#ids, this.#columns) ?? this.#turn;
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
   * Keeps the sampled ids of a request, if there are any.
   *
   * If the turn cannot be resumed, ids of an earlier request are kept until a later request samples
   * some, because the caller may cut the turn short before that.
   */
  add(piece: PieceRequest, sampled: SampledPiece, finish: GenerationPiece["finish"]): void {
    if (sampled.ids.length === 0) return;
    if (this.rule !== undefined) this.#drop(notResumable(this.rule));
    if (this.#pieces.length === 0) {
      const { promptTokenCount, cachedTokenCount } = sampled;
      this.#counts = {
        ...(promptTokenCount !== undefined && { promptTokenCount }),
        ...(cachedTokenCount !== undefined && { cachedTokenCount }),
      };
    }
    this.#columns = joinColumns(this.#columns, sampled.columns);
    if (sampled.queueMs !== undefined) this.#queueMs = (this.#queueMs ?? 0) + sampled.queueMs;
    for (const id of sampled.ids) this.#ids.push(id);
    for (const logprob of sampled.logprobs) this.#logprobs.push(logprob);
    for (const [index, run] of sampled.versions.entries()) {
      const isLast = index === sampled.versions.length - 1;
      const { requestId } = piece;
      this.#pieces.push({ requestId, ...run, finish: isLast ? finish : "abort" });
    }
  }

  /**
   * Returns the name of a column of sampled ids that no later request of the turn returns, if the ids arrived without
   * columns.
   *
   * @param isLast - True if the turn ends with these ids.
   */
  findLacking(
    { ids, columns }: SampledPiece,
    { isLast }: { readonly isLast: boolean },
  ): ColumnName | undefined {
    const { columns: wanted } = this.#turn;
    if (wanted === undefined || columns !== undefined) return undefined;
    const lost = findLostColumn(this.#turn, ids.length, undefined);
    return lost ?? (isLast && ids.length > 0 ? namesOf(wanted.specs)[0] : undefined);
  }

  /**
   * Returns the name of a column that the kept ids lack. A request that breaks after streaming leaves ids without rows,
   * which the next request returns.
   */
  get lackingColumn(): ColumnName | undefined {
    const { columns: wanted, promptIds } = this.#turn;
    if (wanted === undefined || this.#ids.length === 0) return undefined;
    const computed = promptIds.length + this.#ids.length - 1 - wanted.knownRows;
    return namesOf(wanted.specs).find((name) => {
      const rows = isOfAllTokens(name) ? computed : this.#ids.length;
      return countRows(this.#columns, name) < rows;
    });
  }

  /** Discards the kept pieces, because the turn starts again. */
  #drop(reason: string): void {
    for (const piece of this.#pieces) this.discard(piece, reason, piece.tokenCount);
    for (const list of [this.#ids, this.#logprobs, this.#pieces]) list.length = 0;
    this.#columns = undefined;
  }

  /** Records a request with tokens that are not part of the generation. */
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

  /** Lists the tokens that are lost if the turn fails: those discarded and those kept so far. */
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
      ...(this.#columns !== undefined && { columns: this.#columns }),
      ...(this.#queueMs !== undefined && { queueMs: this.#queueMs }),
      discarded: this.#discarded,
    };
  }
}

import type { ColumnPart, ColumnParts } from "../columns/column-part.ts";
import { isOfAllTokens, type ColumnName } from "../columns/column-specs.ts";
import type { Generation, GenerationPiece } from "../engine/engine.ts";
import { isSampledLogprob, logprobRange } from "../values/logprob-range.ts";
import { InvariantError } from "../errors.ts";
import { RollingHash, hashIds } from "./rolling-hash.ts";
import type { Span, SpanKind } from "./span.ts";
import { GrowingIds } from "../engine/growing-ids.ts";
import { findForeignId, largestTokenId, type TokenIds } from "../engine/token-id.ts";

/** A sampled stop id that was removed from the ledger (see `TokenLedger.dropStopId()`). JSON-able. */
export interface DroppedStop {
  readonly turnIndex: number;
  readonly id: number;
  readonly logprob: number;
  /** The policy version that the engine reported for the id. */
  readonly policyVersion: string;
}

/** The place of one turn's sampled ids. */
export interface SampledSpan extends Span {
  readonly kind: "sampled";
  readonly turnIndex: number;
  /** `logprobs[i]` is that of the segment's id at `start + i`. */
  readonly logprobs: readonly number[];
  /** Stretches with one policy version each. Their token counts add up to the span's length. */
  readonly pieces: readonly GenerationPiece[];
}

/**
 * The append-only list of one segment's ids. The engine gets exactly the recorded ids, and returned ids are recorded as
 * they are: nothing is encoded again or rewritten. Methods throw an `InvariantError` for invalid arguments and for
 * calls out of order, and leave the ledger unchanged.
 */
export class TokenLedger {
  readonly #ids = new GrowingIds();
  readonly #spans: (Span | SampledSpan)[] = [];
  readonly #droppedStops: DroppedStop[] = [];
  readonly #hash = new RollingHash();
  /**
   * The last sampled id, which is not hashed yet because it may be removed. A separate list, because a reader may have
   * changed the view.
   */
  #unhashed: TokenIds = [];
  #lastTurnIndex = -1;
  readonly #columns: Partial<Record<ColumnName, ColumnPart[]>> = {};
  #digest: string | undefined;

  /** All ids so far, as a view: the next prompt. Readers must not change it. Later ids do not appear in it. */
  get ids(): Int32Array {
    return this.#ids.view;
  }

  get length(): number {
    return this.#ids.length;
  }

  /** In order, without gaps. */
  get spans(): readonly (Span | SampledSpan)[] {
    return this.#spans;
  }

  get droppedStops(): readonly DroppedStop[] {
    return this.#droppedStops;
  }

  /** The side columns so far. A part may have a row for a stop id that was removed. */
  get columns(): ColumnParts {
    return this.#columns;
  }

  /** Number of tokens whose rows are known, in columns with a row for each computed token. */
  get knownRows(): number {
    return Math.max(this.knownRowsOf("routedExperts"), this.knownRowsOf("indexerTopK"));
  }

  /** Returns the hash of all ids so far (see `hashIds()`). */
  digest(): string {
    this.#digest ??= this.#hash.digest(this.#unhashed);
    return this.#digest;
  }

  /** True if no reader of `ids` has changed them. Takes time proportional to the number of ids. */
  isUnchanged(): boolean {
    return !this.#ids.isDetached && hashIds(this.ids) === this.digest();
  }

  /** Number of ids of the segment's first prompt. */
  get promptLength(): number {
    return this.#spans[0]?.end ?? 0;
  }

  /** Opens the segment with its first prompt. */
  appendPrompt(ids: TokenIds): void {
    requireThat(this.#spans.length === 0, "a segment has one prompt, and begins with it");
    requireThat(ids.length > 0, "a prompt has at least one id");
    requireIds("prompt", ids);
    this.#append("prompt", ids);
  }

  /**
   * Records the ids that the policy sampled in turn `turnIndex`.
   *
   * @throws InvariantError if the generation has an invalid id, logprob or piece.
   */
  appendSampled(turnIndex: number, generation: Generation): void {
    requireSoundValues(generation);
    this.appendChecked(turnIndex, generation);
  }

  /** Records sampled ids that were checked when they arrived (see `checkGeneration()` in `src/engine`). */
  appendChecked(turnIndex: number, { outputIds, logprobs, pieces, columns }: Generation): void {
    requireThat(this.#spans.length > 0, "a segment begins with its prompt");
    requireThat(
      turnIndex > this.#lastTurnIndex,
      `turn ${turnIndex} comes after turn ${this.#lastTurnIndex}`,
    );
    requireSameCounts({ outputIds, logprobs, pieces });
    if (outputIds.length === 0) return;
    if (columns !== undefined) this.#appendColumns(columns, outputIds.length);
    this.#append("sampled", outputIds, {
      turnIndex,
      logprobs: [...logprobs],
      pieces: pieces.map((piece) => ({ ...piece })),
    });
    this.#lastTurnIndex = turnIndex;
  }

  /**
   * Appends the parts of side columns that belong to a turn.
   *
   * @throws InvariantError if a part does not follow the rows so far.
   */
  #appendColumns(columns: ColumnParts, sampledCount: number): void {
    const start = this.#ids.length;
    for (const name of Object.keys(columns) as ColumnName[]) {
      const isWhole = isOfAllTokens(name);
      let next = isWhole ? this.knownRowsOf(name) : start;
      for (const { from, rows } of columns[name]!) {
        requireThat(from === next, `${name} continues at token ${next}, not ${from}`);
        next += rows;
      }
      const end = start + sampledCount - (isWhole ? 1 : 0);
      requireThat(next === end, `${name} of ${end} tokens has rows up to ${next}`);
    }
    for (const name of Object.keys(columns) as ColumnName[]) {
      (this.#columns[name] ??= []).push(...columns[name]!);
    }
  }

  /** Returns the number of tokens whose rows are known in a column. */
  knownRowsOf(name: ColumnName): number {
    const last = this.#columns[name]?.at(-1);
    return last === undefined ? 0 : last.from + last.rows;
  }

  /** Records ids of observations. */
  appendEnvironment(ids: TokenIds): void {
    requireThat(this.#spans.length > 0, "a segment begins with its prompt");
    requireIds("environment", ids);
    this.#append("environment", ids);
  }

  /** Records the ids that close a turn that the policy did not close. */
  appendSynthesisedClose(ids: TokenIds): void {
    requireThat(this.#spans.at(-1)?.kind === "sampled", "only a sampled turn can be closed");
    requireIds("synthesised-close", ids);
    this.#append("synthesised-close", ids);
  }

  /**
   * Removes the last sampled id, a stop id that opens another role than the next message has. For example, GLM samples
   * `<|observation|>` and a user line follows. This is the only kind of removal. It is possible once a turn, and it is
   * recorded.
   */
  dropStopId(id: number): void {
    const span = this.#spans.at(-1);
    requireThat(
      span !== undefined && isSampledSpan(span) && (this.#unhashed[0] ?? this.ids.at(-1)) === id,
      `only the last sampled id can be dropped, and it is not ${id}`,
    );
    const { turnIndex, logprobs, pieces } = span;
    requireThat(
      this.#droppedStops.at(-1)?.turnIndex !== turnIndex,
      `turn ${turnIndex} has one stop id, and it was dropped`,
    );
    const last = pieces.findLastIndex((piece) => piece.tokenCount > 0);
    const { policyVersion } = pieces[last]!;
    this.#ids.removeLast();
    this.#unhashed = [];
    this.#digest = undefined;
    this.#spans.pop();
    this.#droppedStops.push({ turnIndex, id, logprob: logprobs.at(-1)!, policyVersion });
    if (span.end - span.start === 1) return;
    this.#spans.push({
      ...span,
      end: span.end - 1,
      logprobs: logprobs.slice(0, -1),
      pieces: pieces.map((piece, index) =>
        index === last ? { ...piece, tokenCount: piece.tokenCount - 1 } : piece,
      ),
    });
  }

  #append(
    kind: SpanKind,
    ids: TokenIds,
    sampled?: Omit<SampledSpan, keyof Span> & { turnIndex: number },
  ): void {
    if (ids.length === 0) return;
    this.#digest = undefined;
    const start = this.#ids.length;
    const hashedCount = kind === "sampled" ? ids.length - 1 : ids.length;
    if (this.#unhashed.length > 0) this.#hash.append(this.#unhashed);
    this.#hash.append(ids, hashedCount);
    this.#unhashed = ids.slice(hashedCount);
    this.#ids.append(ids);
    this.#spans.push({ kind, start, end: this.#ids.length, ...sampled });
  }
}

function isListOfIds(ids: TokenIds): boolean {
  return findForeignId(ids) < 0;
}

/** True if the policy sampled the span. */
export function isSampledSpan(span: Span | SampledSpan): span is SampledSpan {
  return span.kind === "sampled";
}

/**
 * Checks the ids, logprobs and pieces of a turn.
 *
 * @throws InvariantError if an id, a logprob or the length of a piece is invalid.
 */
function requireSoundValues({ outputIds, logprobs, pieces }: Generation): void {
  requireIds("sampled", outputIds);
  requireThat(
    pieces.every(({ tokenCount }) => Number.isInteger(tokenCount) && tokenCount >= 0),
    "a piece has a whole number of ids",
  );
  for (let index = 0; index < logprobs.length; index++) {
    if (isSampledLogprob(logprobs[index])) continue;
    throw new InvariantError(
      `the logprob of a sampled id is within ${logprobRange.min} and ${logprobRange.max}, not ` +
        String(logprobs[index]),
    );
  }
}

/**
 * Compares the numbers of ids, logprobs and tokens in pieces.
 *
 * @throws InvariantError unless there is one logprob for each id, and the pieces contain all ids.
 */
function requireSameCounts({
  outputIds,
  logprobs,
  pieces,
}: Pick<Generation, "outputIds" | "logprobs" | "pieces">): void {
  if (logprobs.length !== outputIds.length) {
    throw new InvariantError(`${outputIds.length} sampled ids have ${logprobs.length} logprobs`);
  }
  const pieceTotal = pieces.reduce((sum, piece) => sum + piece.tokenCount, 0);
  if (pieceTotal === outputIds.length) return;
  throw new InvariantError(`pieces of ${pieceTotal} ids make up ${outputIds.length} sampled ids`);
}

function requireIds(kind: SpanKind, ids: TokenIds): void {
  requireThat(isListOfIds(ids), `each ${kind} id is a whole number from 0 to ${largestTokenId}`);
}

function requireThat(condition: unknown, message: string): asserts condition {
  if (!condition) throw new InvariantError(message);
}

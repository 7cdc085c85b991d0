import type { Generation, GenerationPiece } from "../engine/engine.ts";
import { assertInvariant } from "../errors.ts";
import { RollingHash } from "./rolling-hash.ts";
import type { Span, SpanKind } from "./span.ts";

/** A sampled stop id that had to leave the ledger (see `TokenLedger.dropStopId()`). JSON-able. */
export interface DroppedStop {
  readonly turnIndex: number;
  readonly id: number;
  readonly logprob: number;
}

/** The sampled ids of one turn, in their place. */
export interface SampledSpan extends Span {
  readonly kind: "sampled";
  readonly turnIndex: number;
  /** `logprobs[i]` belongs to the segment's id at `start + i`. */
  readonly logprobs: readonly number[];
  /** Stretches with one policy version each; their counts add up to the span's length. */
  readonly pieces: readonly GenerationPiece[];
}

/**
 * The append-only record of one segment's ids: what the engine is sent is what is recorded, and
 * what the engine returned is recorded as it came. Nothing in it is ever re-encoded or rewritten.
 */
export class TokenLedger {
  readonly #ids: number[] = [];
  readonly #spans: (Span | SampledSpan)[] = [];
  readonly #droppedStops: DroppedStop[] = [];
  #hash = new RollingHash();

  /** All ids so far, as a live view: the next prompt. Never to be changed by the reader. */
  get ids(): readonly number[] {
    return this.#ids;
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

  /** The hash of all ids so far (see `hashIds()`). */
  digest(): string {
    return this.#hash.digest();
  }

  /** Number of ids of the segment's first prompt. */
  get promptLength(): number {
    return this.#spans[0]?.end ?? 0;
  }

  /** Opens the segment with its first prompt. */
  appendPrompt(ids: readonly number[]): void {
    assertInvariant(this.#spans.length === 0, "a segment has one prompt, and begins with it");
    this.#append("prompt", ids);
  }

  /** Records what the policy sampled in turn `turnIndex`, verbatim. */
  appendSampled(turnIndex: number, generation: Generation): void {
    const { outputIds, logprobs, pieces } = generation;
    assertInvariant(this.#spans.length > 0, "a segment begins with its prompt");
    assertInvariant(
      logprobs.length === outputIds.length,
      `${outputIds.length} sampled ids have ${logprobs.length} logprobs`,
    );
    assertInvariant(
      logprobs.every((logprob) => Number.isFinite(logprob)),
      "each sampled id has a finite logprob",
    );
    const pieceTotal = pieces.reduce((sum, piece) => sum + piece.tokenCount, 0);
    assertInvariant(
      pieceTotal === outputIds.length,
      `pieces of ${pieceTotal} ids make up ${outputIds.length} sampled ids`,
    );
    if (outputIds.length === 0) return;
    this.#append("sampled", outputIds, { turnIndex, logprobs: [...logprobs], pieces: [...pieces] });
  }

  /** Records what the environment added. */
  appendEnvironment(ids: readonly number[]): void {
    this.#append("environment", ids);
  }

  /** Records the close of a turn that the policy left open. */
  appendSynthesisedClose(ids: readonly number[]): void {
    assertInvariant(this.#spans.at(-1)?.kind === "sampled", "only a sampled turn can be closed");
    this.#append("synthesised-close", ids);
  }

  /**
   * Takes the last sampled id out again, where it is a stop id that opens another role than the one
   * that follows (GLM samples `<|observation|>`, and the environment answers with a user line). The
   * only removal there is, and it is recorded.
   */
  dropStopId(id: number): void {
    const span = this.#spans.at(-1);
    assertInvariant(
      span !== undefined && isSampledSpan(span) && this.#ids.at(-1) === id,
      `only the last sampled id can be dropped, and it is not ${id}`,
    );
    this.#ids.pop();
    this.#droppedStops.push({ turnIndex: span.turnIndex, id, logprob: span.logprobs.at(-1)! });
    this.#spans.pop();
    const kept = span.end - span.start - 1;
    if (kept > 0) {
      this.#spans.push({
        ...span,
        end: span.end - 1,
        logprobs: span.logprobs.slice(0, -1),
        pieces: shorten(span.pieces),
      });
    }
    this.#hash = new RollingHash();
    this.#hash.append(this.#ids);
  }

  #append(
    kind: SpanKind,
    ids: readonly number[],
    sampled?: Omit<SampledSpan, keyof Span> & { turnIndex: number },
  ): void {
    assertInvariant(
      ids.every((id) => Number.isInteger(id) && id >= 0),
      `each ${kind} id is a whole number of at least 0`,
    );
    if (ids.length === 0) return;
    const start = this.#ids.length;
    for (const id of ids) this.#ids.push(id);
    this.#hash.append(ids);
    this.#spans.push({ kind, start, end: this.#ids.length, ...sampled });
  }
}

/** Whether the span was sampled by the policy. */
export function isSampledSpan(span: Span | SampledSpan): span is SampledSpan {
  return span.kind === "sampled";
}

function shorten(pieces: readonly GenerationPiece[]): readonly GenerationPiece[] {
  const last = pieces.findLastIndex((piece) => piece.tokenCount > 0);
  return pieces.map((piece, index) =>
    index === last ? { ...piece, tokenCount: piece.tokenCount - 1 } : piece,
  );
}

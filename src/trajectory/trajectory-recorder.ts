import type { ColumnPart, ColumnParts } from "../columns/column-part.ts";
import { isOfAllTokens, type ColumnName } from "../columns/column-specs.ts";
import type { Generation } from "../engine/engine.ts";
import type { TokenIds } from "../engine/token-id.ts";
import { InvariantError, assertInvariant, ownBug } from "../errors.ts";
import type { EnvironmentDelta } from "../renderer/renderer.ts";
import { hashIds } from "./rolling-hash.ts";
import { TokenLedger, isSampledSpan } from "./token-ledger.ts";
import { createSegment, type SampledStretch, type Segment, type TurnSpan } from "./segment.ts";
import type { Span } from "./span.ts";

interface OpenSegment {
  readonly ledger: TokenLedger;
  /** The turns that the segment's row trains. */
  readonly turns: TurnSpan[];
  /** Number of all turns, trained or not. */
  sampledCount: number;
}

/**
 * Records ids as they are sent and sampled, segment by segment, and makes the rows. Episodes, forks and the paths of a
 * gateway's session are recorded with it.
 */
export class TrajectoryRecorder {
  readonly #segments: OpenSegment[] = [];
  #turnCount = 0;
  #isFork = false;
  /** Number of ids in the closed segments, without the first prompt of each. */
  #closedLength = 0;

  /** Opens a segment with a new prompt: the first one, or a rewritten history. */
  openSegment(promptIds: TokenIds): void {
    const before = this.#segments.at(-1);
    assertInvariant(
      before === undefined || before.turns.length > 0,
      "a segment has at least one turn before the next begins",
    );
    this.#closedLength = before === undefined ? 0 : this.responseLength;
    const ledger = new TokenLedger();
    asserted(() => ledger.appendPrompt(promptIds));
    this.#segments.push({ ledger, turns: [], sampledCount: 0 });
  }

  /** The next prompt, as a view of the ledger. */
  get promptIds(): Int32Array {
    return this.#open().ledger.ids;
  }

  /** Hash of the next prompt (see `hashIds()`). */
  get promptHash(): string {
    return this.#open().ledger.digest();
  }

  /** Number of ids in the open segment. */
  get length(): number {
    return this.#open().ledger.length;
  }

  /** Number of tokens of the open segment whose rows are known (see `ColumnRequest`). */
  get knownRows(): number {
    return this.#open().ledger.knownRows;
  }

  /** Number of ids in all segments, sampled or not, without the first prompt of each. */
  get responseLength(): number {
    const { ledger } = this.#open();
    return this.#closedLength + ledger.length - ledger.promptLength;
  }

  /** True if the record starts with a fork. */
  get isFork(): boolean {
    return this.#isFork;
  }

  get segmentCount(): number {
    return this.#segments.length;
  }

  /**
   * Starts a fork: everything recorded so far becomes the prompt of the first row. The ids sampled before are trained
   * in the original's rows.
   */
  beginFork(): void {
    this.#isFork = true;
    const { ledger, sampledCount } = this.#open();
    this.#segments.splice(0, this.#segments.length, { ledger, turns: [], sampledCount });
  }

  /**
   * Records a turn's generation as it is. Everything before it is the turn's prompt.
   *
   * @param options.isTrained - False if another row trains the turn, or none: this row has its ids with mask 0.
   */
  appendTurn(
    generation: Generation,
    { isTrained = true }: { readonly isTrained?: boolean } = {},
  ): void {
    const segment = this.#open();
    const { ledger, turns } = segment;
    const start = ledger.length;
    const promptHash = isTrained ? ledger.digest() : "";
    asserted(() => ledger.appendChecked(segment.sampledCount, generation));
    segment.sampledCount += 1;
    if (!isTrained) return;
    const turnIndex = this.#turnCount++;
    const outputHash = hashIds(generation.outputIds);
    const finish = generation.finish.type;
    const end = start + generation.outputIds.length;
    turns.push({ turnIndex, start, end, finish, promptHash, outputHash });
  }

  /** Records the rendered observations of a turn. */
  appendDelta(delta: EnvironmentDelta): void {
    asserted(() => this.#appendDelta(delta));
  }

  #appendDelta({ closeSynthesised, droppedStopId, ids }: EnvironmentDelta): void {
    const { ledger, turns, sampledCount } = this.#open();
    assertInvariant(sampledCount > 0, "the environment answers a turn");
    if (droppedStopId !== undefined) {
      const end = ledger.length;
      ledger.dropStopId(droppedStopId);
      const turn = turns.at(-1);
      if (turn?.end === end) {
        const { id, logprob, policyVersion } = ledger.droppedStops.at(-1)!;
        turns[turns.length - 1] = {
          ...turn,
          end: end - 1,
          droppedStopId: id,
          droppedStopLogprob: logprob,
          droppedStopVersion: policyVersion,
        };
      }
    }
    if (closeSynthesised && ledger.spans.at(-1)?.kind === "sampled") {
      ledger.appendSynthesisedClose(ids.slice(0, 1));
      ledger.appendEnvironment(ids.slice(1));
    } else {
      ledger.appendEnvironment(ids);
    }
  }

  /** True if the recorded ids were not changed from outside (see `TokenLedger.isUnchanged()`). */
  isUnchanged(): boolean {
    return this.#segments.every(({ ledger }) => ledger.isUnchanged());
  }

  /**
   * Returns everything recorded so far, as plain data. A rewritten history without a turn is left out: it has nothing
   * to train on.
   */
  toSegments(): readonly Segment[] {
    return this.#segments
      .filter(({ turns }, index) => index === 0 || turns.length > 0)
      .map(toSegment);
  }

  #open(): OpenSegment {
    const segment = this.#segments.at(-1);
    assertInvariant(segment !== undefined, "an episode begins with its prompt");
    return segment;
  }
}

/** Turns an error of the ledger into a bug of this package: all inputs were checked when they arrived. */
function asserted(append: () => void): void {
  try {
    append();
  } catch (error) {
    throw error instanceof InvariantError ? ownBug(error.message) : error;
  }
}

/** Returns the row of a ledger. The ids before its first trained turn are its prompt. */
function toSegment({ ledger, turns }: OpenSegment): Segment {
  const promptLength = turns[0]?.start ?? ledger.length;
  const turnIndexes = new Map(turns.map(({ start, turnIndex }) => [start, turnIndex]));
  const spans: Span[] = [{ kind: "prompt", start: 0, end: promptLength }];
  const sampled: SampledStretch[] = [];
  for (const span of ledger.spans) {
    const { kind, start, end } = span;
    if (start < promptLength) continue;
    if (!isSampledSpan(span)) {
      spans.push({ kind, start, end });
      continue;
    }
    const turnIndex = turnIndexes.get(start);
    if (turnIndex === undefined) {
      spans.push({ kind: "environment", start, end });
      continue;
    }
    spans.push({ kind, start, end, turnIndex });
    sampled.push({ start, logprobs: span.logprobs, pieces: span.pieces });
  }
  const columns = columnsOfTurns(ledger.columns, turns);
  // A copy, because the ledger's memory has room for more ids and a copy of them as JSON.
  return createSegment({
    ids: ledger.ids.slice(),
    sampled,
    promptLength,
    spans,
    turns: [...turns],
    ...(columns !== undefined && { columns }),
  });
}

/** Returns the columns of a row: all rows of computed tokens, and the rows of the tokens that it trains. */
function columnsOfTurns(columns: ColumnParts, turns: readonly TurnSpan[]): ColumnParts | undefined {
  const names = Object.keys(columns) as ColumnName[];
  if (names.length === 0 || turns.length === 0) return undefined;
  const kept: Partial<Record<ColumnName, readonly ColumnPart[]>> = {};
  for (const name of names) {
    const isTrained = ({ from }: ColumnPart): boolean =>
      turns.some(({ start, end }) => from >= start && from < end);
    kept[name] = isOfAllTokens(name) ? [...columns[name]!] : columns[name]!.filter(isTrained);
  }
  return kept;
}

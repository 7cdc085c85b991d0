import type { TurnRecord } from "../../episode/episode.ts";
import { cutLines, type LineLimits } from "./cut-lines.ts";
import type { RowColumns, RowHeader, VersionBand } from "./row-columns.ts";
import { searchTokens, type SearchResult } from "./search-tokens.ts";
import { kindIndex, tokenKinds, type TokenKind } from "./token-kind.ts";
import { TokenTexts } from "./token-texts.ts";
import { worstTokens } from "./worst-tokens.ts";

/** The number of most surprising tokens that the keyboard can visit. */
const worstLimit = 500;

/** All facts about one token. */
interface TokenFacts {
  readonly index: number;
  readonly id: number;
  readonly text: string;
  readonly kind: TokenKind;
  readonly isSpecial: boolean;
  /** The row's own loss mask at this token. */
  readonly mask: number;
  readonly logprob: number;
  /** The policy version. Absent if the token is not sampled. */
  readonly version?: string;
  /** The turn that sampled the token, or the turn before it. Absent in the first prompt. */
  readonly turn?: RowHeader["turns"][number];
}

/** A training row with values derived from it. */
export class RowView {
  readonly header: RowHeader;
  readonly texts: TokenTexts;
  readonly #columns: RowColumns;
  readonly #breaks: Uint8Array;
  #worst: readonly number[] | undefined;
  #versionPlaces: ReadonlyMap<string, number> | undefined;
  /** Recomputed logprobs by token index. `undefined` until they are computed. */
  rescored: Float64Array | undefined;

  #resumed: ReadonlySet<number> = new Set();

  constructor(columns: RowColumns) {
    this.#columns = columns;
    this.header = columns.header;
    this.texts = new TokenTexts(columns);
    this.#breaks = findBreaks(columns);
  }

  get tokenCount(): number {
    return this.header.tokenCount;
  }

  get ids(): Int32Array {
    return this.#columns.ids;
  }

  kindAt(index: number): TokenKind {
    return tokenKinds[this.#columns.kinds[index]!]!;
  }

  logprobAt(index: number): number {
    return this.#columns.logprobs[index]!;
  }

  maskAt(index: number): number {
    return this.#columns.mask[index]!;
  }

  isSampledAt(index: number): boolean {
    return this.#columns.kinds[index] === kindIndex.sampled;
  }

  /**
   * Returns the difference between the recorded logprob and the recomputed one, in nats. NaN
   * without a recomputed one.
   */
  differenceAt(index: number): number {
    return Math.abs(this.logprobAt(index) - (this.rescored?.[index] ?? Number.NaN));
  }

  /** Marks the places at which sampling was interrupted. The episode's turns record these places; the row does not. */
  noteInterruptions(turns: readonly Pick<TurnRecord, "turnIndex" | "pieces">[]): void {
    const places = new Set<number>();
    for (const { turnIndex, start, end } of this.header.turns) {
      const { pieces = [] } = turns[turnIndex] ?? {};
      let place = start;
      for (const [index, { requestId, tokenCount }] of pieces.entries()) {
        const isResumed = index > 0 && pieces[index - 1]!.requestId !== requestId;
        if (isResumed && place < end) places.add(place);
        place += tokenCount;
      }
    }
    this.#resumed = places;
  }

  /** True if sampling was interrupted before the token. */
  isResumedAt(index: number): boolean {
    return this.#resumed.has(index);
  }

  /** The number of interruptions within the row's turns. */
  get interruptionCount(): number {
    return this.#resumed.size;
  }

  /**
   * Returns the index of the token's version among the row's versions, in order of first
   * appearance.
   */
  versionPlaceAt(index: number): number {
    this.#versionPlaces ??= new Map(
      [...new Set(this.header.versions.map(({ version }) => version))].map((version, place) => [
        version,
        place,
      ]),
    );
    return this.#versionPlaces.get(this.bandAt(index)?.version ?? "") ?? 0;
  }

  /** Returns the version band that contains the token. */
  bandAt(index: number): VersionBand | undefined {
    return lastStarting(this.header.versions, index, ({ end }) => index < end);
  }

  /** Returns the turn that sampled the token, or the turn before it. */
  turnAt(index: number): RowHeader["turns"][number] | undefined {
    return lastStarting(this.header.turns, index, () => true);
  }

  /** Returns the turn with a dropped stop id before the token, if any. */
  droppedStopBefore(index: number): RowHeader["turns"][number] | undefined {
    const turn = index === 0 ? undefined : this.turnAt(index - 1);
    return turn?.droppedStopId !== undefined && turn.end === index ? turn : undefined;
  }

  factsAt(index: number): TokenFacts {
    const turn = this.turnAt(index);
    const version = this.isSampledAt(index) ? this.bandAt(index)?.version : undefined;
    return {
      index,
      id: this.ids[index]!,
      text: this.texts.textAt(index),
      kind: this.kindAt(index),
      isSpecial: this.texts.isSpecialAt(index),
      mask: this.maskAt(index),
      logprob: this.logprobAt(index),
      ...(version !== undefined && { version }),
      ...(turn !== undefined && { turn }),
    };
  }

  /** Counts the tokens of each kind, and inconsistencies. */
  counts(): Readonly<Record<TokenKind["name"], number>> & {
    readonly trained: number;
    readonly droppedStops: number;
    /** The number of tokens whose mask contradicts their kind. */
    readonly disagreeing: number;
  } {
    const { kinds, mask } = this.#columns;
    const perKind = tokenKinds.map(() => 0);
    let trained = 0;
    let disagreeing = 0;
    for (let index = 0; index < kinds.length; index++) {
      const kind = kinds[index]!;
      perKind[kind]! += 1;
      if (mask[index] === 1) trained++;
      if (mask[index] !== Number(kind === kindIndex.sampled)) disagreeing++;
    }
    const droppedStops = this.header.turns.filter(
      ({ droppedStopId }) => droppedStopId !== undefined,
    ).length;
    const named = Object.fromEntries(
      tokenKinds.map(({ name }, index) => [name, perKind[index]!]),
    ) as Record<TokenKind["name"], number>;
    return { ...named, trained, droppedStops, disagreeing };
  }

  /**
   * Returns the start of the next part of a kind after a token, or of the first part if no other
   * follows. `undefined` if there is none.
   */
  nextOfKind(name: TokenKind["name"], after: number): number | undefined {
    const { kinds } = this.#columns;
    const wanted = kindIndex[name];
    let first: number | undefined;
    for (let index = 0; index < kinds.length; index++) {
      if (kinds[index] !== wanted || (index > 0 && this.#breaks[index] === 0)) continue;
      if (index > after) return index;
      first ??= index;
    }
    return first;
  }

  /** The sampled tokens with the lowest logprobs, lowest first. */
  get worst(): readonly number[] {
    this.#worst ??= worstTokens(
      this.sampledIndexes(),
      (index) => -this.logprobAt(index),
      worstLimit,
    );
    return this.#worst;
  }

  *sampledIndexes(): Generator<number> {
    for (const { start, end } of this.header.turns) {
      for (let index = start; index < end; index++) {
        if (this.isSampledAt(index)) yield index;
      }
    }
  }

  lines(limits: LineLimits): Uint32Array {
    const { texts } = this;
    return cutLines(
      {
        tokenCount: this.tokenCount,
        breaks: this.#breaks,
        widthAt: (index) => texts.widthAt(index),
        endsLineAt: (index) => texts.endsLineAt(index),
      },
      limits,
    );
  }

  search(query: string): SearchResult {
    const { texts, ids, tokenCount } = this;
    return searchTokens({ ids, tokenCount, textAt: (index) => texts.textAt(index) }, query);
  }
}

/** Marks the tokens that have another author or turn than the token before them. */
function findBreaks({ kinds, header }: RowColumns): Uint8Array {
  const breaks = new Uint8Array(kinds.length);
  for (let index = 1; index < kinds.length; index++) {
    if (kinds[index] !== kinds[index - 1]) breaks[index] = 1;
  }
  for (const { start, end } of header.turns) {
    breaks[start] = 1;
    if (end < breaks.length) breaks[end] = 1;
  }
  return breaks;
}

/** Returns the last of the sorted items that starts at or before `index` and satisfies `holds`. */
function lastStarting<Stretch extends { readonly start: number; readonly end: number }>(
  stretches: readonly Stretch[],
  index: number,
  holds: (stretch: Stretch) => boolean,
): Stretch | undefined {
  let low = 0;
  let high = stretches.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (stretches[middle]!.start <= index) low = middle + 1;
    else high = middle;
  }
  const found = stretches[low - 1];
  return found !== undefined && holds(found) ? found : undefined;
}

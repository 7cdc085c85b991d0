import type { TurnRecord } from "../../episode/episode.ts";
import { cutLines, type LineLimits } from "./cut-lines.ts";
import type { RowColumns, RowHeader, VersionBand } from "./row-columns.ts";
import { searchTokens, type SearchResult } from "./search-tokens.ts";
import { kindIndex, tokenKinds, type TokenKind } from "./token-kind.ts";
import { TokenTexts } from "./token-texts.ts";
import { worstTokens } from "./worst-tokens.ts";

/** The number of the worst tokens that can be visited. */
const worstLimit = 500;

/** Everything that is known of one token. */
interface TokenFacts {
  readonly index: number;
  readonly id: number;
  readonly text: string;
  readonly kind: TokenKind;
  readonly isSpecial: boolean;
  /** The row's own loss mask at this token. */
  readonly mask: number;
  readonly logprob: number;
  /** Absent if the token is not sampled. */
  readonly version?: string;
  /** The turn that sampled the token, or that it answers. Absent in the first prompt. */
  readonly turn?: RowHeader["turns"][number];
}

/** A training row with what is derived from it. */
export class RowView {
  readonly header: RowHeader;
  readonly texts: TokenTexts;
  readonly #columns: RowColumns;
  readonly #breaks: Uint8Array;
  #worst: readonly number[] | undefined;
  #versionPlaces: ReadonlyMap<string, number> | undefined;
  /** Logprobs that were computed again, by place in the row; absent until they were. */
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

  /** Records the interruptions of sampling. They are in the episode's turns, and not in the row. */
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

  /** The version's place among those of the row, in the order in which they appear. */
  versionPlaceAt(index: number): number {
    this.#versionPlaces ??= new Map(
      [...new Set(this.header.versions.map(({ version }) => version))].map((version, place) => [
        version,
        place,
      ]),
    );
    return this.#versionPlaces.get(this.bandAt(index)?.version ?? "") ?? 0;
  }

  /** The version band that holds the token. */
  bandAt(index: number): VersionBand | undefined {
    return lastStarting(this.header.versions, index, ({ end }) => index < end);
  }

  /** The turn that sampled the token, or that it answers. */
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

  /** Counts tokens by kind, and inconsistencies. */
  counts(): Readonly<Record<TokenKind["name"], number>> & {
    readonly trained: number;
    readonly droppedStops: number;
    /** The number of tokens with a mask that contradicts their kind. */
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
   * Returns the start of the next stretch of a kind after a token, or else of the first stretch.
   * `undefined` if there is none.
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

  /** The sampled tokens that surprise most by their own logprobs, the worst first. */
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

/** Marks the places at which another author or another turn begins. */
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

/**
 * Returns the last of the sorted stretches that starts at or before `index` and satisfies `holds`.
 */
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

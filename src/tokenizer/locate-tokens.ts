import type { TokenCodec } from "./codec.ts";

type Span = readonly [start: number, end: number];

/**
 * Finds the ids of parts of their decoded text. `spans[i]`, in UTF-16 code units, gives the i-th
 * result, in indices of `ids`. Ends are exclusive. An id that covers only a part of a span belongs
 * to it.
 *
 * For byte-level tokenizers, the bytes of ids are counted. For others, prefixes of the ids are
 * decoded, a few for each span.
 */
export function locateTokens(
  codec: TokenCodec,
  { ids, text }: { readonly ids: readonly number[]; readonly text: string },
  spans: readonly Span[],
): readonly Span[] | Promise<readonly Span[]> {
  if (spans.length === 0) return [];
  const ends = byteEnds(codec, ids);
  const byteCount = Buffer.byteLength(text);
  if (ends?.at(-1) === byteCount && !text.includes("\uFFFD")) {
    // In ASCII, a character is a byte.
    const offsets = byteCount === text.length ? undefined : byteOffsets(text, spans.flat());
    return spans.map(([start, end]) => {
      const first = countUpTo(ends, offsets === undefined ? start : (offsets.get(start) ?? 0));
      const last = countBelow(ends, offsets === undefined ? end : (offsets.get(end) ?? 0));
      return [first, Math.max(first, Math.min(ids.length, last + 1))];
    });
  }
  return locateByDecoding(codec, { ids, text }, spans);
}

/** The number of bytes of each id that was used before, or 0. */
const knownLengths = new WeakMap<TokenCodec, Uint32Array>();

function lengthsOf(codec: TokenCodec): Uint32Array {
  let lengths = knownLengths.get(codec);
  if (lengths === undefined) {
    lengths = new Uint32Array(codec.vocabularySize);
    knownLengths.set(codec, lengths);
  }
  return lengths;
}

/** Returns the number of bytes up to the end of each id. `undefined` if ids are not bytes. */
function byteEnds(codec: TokenCodec, ids: readonly number[]): number[] | undefined {
  if (codec.byteLengthOf === undefined) return undefined;
  const lengths = lengthsOf(codec);
  const ends: number[] = [];
  let end = 0;
  for (const id of ids) {
    let length = lengths[id] ?? 0;
    if (length === 0) {
      const counted = codec.byteLengthOf(id);
      if (counted === undefined) return undefined;
      length = counted;
      lengths[id] = length;
    }
    end += length;
    ends.push(end);
  }
  return ends;
}

/** Returns the number of bytes before each position, in one pass over the text. */
function byteOffsets(text: string, places: readonly number[]): ReadonlyMap<number, number> {
  const offsets = new Map<number, number>();
  let place = 0;
  let bytes = 0;
  for (const next of places.toSorted((left, right) => left - right)) {
    bytes += Buffer.byteLength(text.slice(place, next));
    place = next;
    offsets.set(next, bytes);
  }
  return offsets;
}

/** Returns how many of the ascending numbers are at most `limit`. */
function countUpTo(rising: readonly number[], limit: number): number {
  return bisect(rising.length, (index) => (rising[index] ?? 0) > limit);
}

/** Returns how many of the ascending numbers are below `limit`. */
function countBelow(rising: readonly number[], limit: number): number {
  return bisect(rising.length, (index) => (rising[index] ?? 0) >= limit);
}

/** Returns the first index for which the condition is true. It must be true for all later ones. */
function bisect(length: number, condition: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (condition(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first ids of a list, up to the last complete character. */
interface Prefix {
  /** Number of ids. */
  readonly count: number;
  /** Length of their text. */
  readonly length: number;
}

/**
 * Maximum number of ids at the end of a prefix that are a part of a character: one for each byte
 * but the last.
 */
const maxPartIds = 3;

async function locateByDecoding(
  codec: TokenCodec,
  { ids, text }: { readonly ids: readonly number[]; readonly text: string },
  spans: readonly Span[],
): Promise<readonly Span[]> {
  const texts = new Map<number, string>();
  const textOf = async (count: number): Promise<string> => {
    const known = texts.get(count) ?? (await codec.decode(ids.slice(0, count)));
    texts.set(count, known);
    return known;
  };
  /**
   * Returns the complete characters of the first `count` ids. The bytes of an incomplete character
   * decode to other text.
   */
  const prefixOf = async (count: number): Promise<Prefix> => {
    for (
      let completeCount = count;
      completeCount >= Math.max(0, count - maxPartIds);
      completeCount--
    ) {
      const prefix = await textOf(completeCount);
      if (text.startsWith(prefix)) return { count: completeCount, length: prefix.length };
    }
    return { count, length: (await textOf(count)).length };
  };
  /**
   * Returns the smallest number of ids for which the condition is true. It must be true for all
   * larger ones.
   */
  const fewest = async (condition: (prefix: Prefix, count: number) => boolean): Promise<number> => {
    let low = 0;
    let high = ids.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (condition(await prefixOf(middle), middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const located: Span[] = [];
  for (const [start, end] of spans) {
    const completing = await fewest(({ length }) => length > start);
    const { length: before } = await prefixOf(Math.max(0, completing - 1));
    // Several ids may form the first character of the span.
    const startCount = await fewest(
      ({ count: completeCount, length }, count) =>
        length > before || (length === before && completeCount < count),
    );
    const first = Math.max(0, startCount - 1);
    located.push([first, Math.max(first, await fewest(({ length }) => length >= end))]);
  }
  return located;
}

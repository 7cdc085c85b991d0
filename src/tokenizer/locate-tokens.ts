import type { TokenCodec } from "./codec.ts";

type Span = readonly [start: number, end: number];

/**
 * Which ids spell some stretches of their decoded text. `spans[i]`, in UTF-16 code units, gives the
 * i-th result, in places of `ids`; ends are exclusive. An id that spells only part of a stretch belongs
 * to it.
 *
 * Where ids stand for bytes these are counted; with other tokenizers the beginnings of the ids are decoded, a few
 * for each stretch.
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
    // In ASCII a character is a byte.
    const offsets = byteCount === text.length ? undefined : byteOffsets(text, spans.flat());
    return spans.map(([start, end]) => {
      const first = countUpTo(ends, offsets === undefined ? start : (offsets.get(start) ?? 0));
      const last = countBelow(ends, offsets === undefined ? end : (offsets.get(end) ?? 0));
      return [first, Math.max(first, Math.min(ids.length, last + 1))];
    });
  }
  return locateByDecoding(codec, { ids, text }, spans);
}

/** The bytes of each id that was asked for; 0 stands for one that was not. */
const knownLengths = new WeakMap<TokenCodec, Uint32Array>();

function lengthsOf(codec: TokenCodec): Uint32Array {
  let lengths = knownLengths.get(codec);
  if (lengths === undefined) {
    lengths = new Uint32Array(codec.vocabularySize);
    knownLengths.set(codec, lengths);
  }
  return lengths;
}

/** The number of bytes up to the end of each id; `undefined` where ids do not stand for bytes. */
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

/** The bytes before each of the places, in one pass over the text. */
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

/** How many of the rising numbers are at most `limit`. */
function countUpTo(rising: readonly number[], limit: number): number {
  return bisect(rising.length, (index) => (rising[index] ?? 0) > limit);
}

/** How many of the rising numbers are below `limit`. */
function countBelow(rising: readonly number[], limit: number): number {
  return bisect(rising.length, (index) => (rising[index] ?? 0) >= limit);
}

/** The first index for which the condition holds, which it does for all later ones. */
function bisect(length: number, holds: (index: number) => boolean): number {
  let low = 0;
  let high = length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (holds(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** The first ids of a list, as far as they spell whole characters. */
interface Beginning {
  /** How many ids these are. */
  readonly count: number;
  /** Their text's length. */
  readonly length: number;
}

/** Most ids at the end of a beginning that spell a character in part: one for each of its bytes but the last. */
const mostPartIds = 3;

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
  /** What the first `count` ids spell whole: the bytes of a character that is not complete are decoded otherwise. */
  const beginningOf = async (count: number): Promise<Beginning> => {
    for (let whole = count; whole >= Math.max(0, count - mostPartIds); whole--) {
      const beginning = await textOf(whole);
      if (text.startsWith(beginning)) return { count: whole, length: beginning.length };
    }
    return { count, length: (await textOf(count)).length };
  };
  /** The fewest ids of which the condition holds, which it does of any that are more. */
  const fewest = async (
    holds: (beginning: Beginning, count: number) => boolean,
  ): Promise<number> => {
    let low = 0;
    let high = ids.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if (holds(await beginningOf(middle), middle)) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const located: Span[] = [];
  for (const [start, end] of spans) {
    const completing = await fewest(({ length }) => length > start);
    const { length: before } = await beginningOf(Math.max(0, completing - 1));
    // The first character of the stretch may be spelled by several ids.
    const beginning = await fewest(
      ({ count: whole, length }, count) => length > before || (length === before && whole < count),
    );
    const first = Math.max(0, beginning - 1);
    located.push([first, Math.max(first, await fewest(({ length }) => length >= end))]);
  }
  return located;
}

import type { TokenCodec } from "./codec.ts";

type Span = readonly [start: number, end: number];

/**
 * Which ids spell some stretches of their decoded text. `spans[i]`, in UTF-16 code units, gives the
 * i-th result, in places of `ids`; ends are exclusive. An id that spells only part of a stretch belongs
 * to it.
 *
 * Byte-level vocabularies are looked up; with others the beginnings of the ids are decoded, a few for
 * each stretch.
 */
export function locateTokens(
  codec: TokenCodec,
  { ids, text }: { readonly ids: readonly number[]; readonly text: string },
  spans: readonly Span[],
): readonly Span[] | Promise<readonly Span[]> {
  if (spans.length === 0) return [];
  const ends = byteEnds(codec, ids);
  if (ends?.at(-1) === Buffer.byteLength(text) && !text.includes("\uFFFD")) {
    const offsets = byteOffsets(text, spans.flat());
    return spans.map(([start, end]) => {
      const first = countUpTo(ends, offsets.get(start) ?? 0);
      const last = countBelow(ends, offsets.get(end) ?? 0);
      return [first, Math.max(first, Math.min(ids.length, last + 1))];
    });
  }
  return locateByDecoding(codec, ids, spans);
}

/** The bytes of each id's spelling that was asked for; 0 stands for one that was not. */
const knownLengths = new WeakMap<TokenCodec, Uint32Array>();

function lengthsOf(codec: TokenCodec): Uint32Array {
  let lengths = knownLengths.get(codec);
  if (lengths === undefined) {
    lengths = new Uint32Array(codec.vocabularySize);
    for (const { id, content } of codec.addedTokens) lengths[id] = Buffer.byteLength(content);
    knownLengths.set(codec, lengths);
  }
  return lengths;
}

/** The number of bytes up to the end of each id, if one character of a spelling is one byte. */
function byteEnds(codec: TokenCodec, ids: readonly number[]): number[] | undefined {
  const lengths = lengthsOf(codec);
  const ends: number[] = [];
  let end = 0;
  for (const id of ids) {
    let length = lengths[id] ?? 0;
    if (length === 0) {
      const spelled = codec.tokenOf(id)?.length;
      if (spelled === undefined) return undefined;
      length = spelled;
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

async function locateByDecoding(
  codec: TokenCodec,
  ids: readonly number[],
  spans: readonly Span[],
): Promise<readonly Span[]> {
  const lengths = new Map<number, number>();
  const lengthOf = async (count: number): Promise<number> => {
    const length = lengths.get(count) ?? (await codec.decode(ids.slice(0, count))).length;
    lengths.set(count, length);
    return length;
  };
  /** The fewest ids whose text is longer than that. */
  const fewestBeyond = async (length: number): Promise<number> => {
    let low = 0;
    let high = ids.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((await lengthOf(middle)) > length) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  const located: Span[] = [];
  for (const [start, end] of spans) {
    const first = Math.max(0, (await fewestBeyond(start)) - 1);
    located.push([first, Math.max(first, await fewestBeyond(end - 1))]);
  }
  return located;
}

import type { Extent } from "../internal/json-members.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";

/** A byte-pair model in the form that the library reads at a third of the memory. */
export interface BytePairFiles {
  /** JSON: ids by spelling. */
  readonly vocabulary: Uint8Array;
  /** A line for each merge: two spellings with a space between them. */
  readonly merges: Uint8Array;
  /** The library's further options of the model. */
  readonly options: BytePairOptions;
}

/** What the library lets a model be told beside its vocabulary and merges. */
interface BytePairOptions {
  readonly unkToken?: string;
  readonly continuingSubwordPrefix?: string;
  readonly endOfWordSuffix?: string;
  readonly fuseUnk?: boolean;
  readonly byteFallback?: boolean;
}

const quote = 0x22;
const backslash = 0x5c;
const space = 0x20;
const lineFeed = 0x0a;
const carriageReturn = 0x0d;
const comma = 0x2c;
const openList = 0x5b;
const closeList = 0x5d;

/**
 * The two files that hold the model of a `tokenizer.json`, or `undefined` where they could not say all
 * that it says: another kind of model, an option that they have no place for, a spelling with a space
 * or the end of a line in it.
 */
export function toBytePairFiles({
  outline,
  bytes,
  model,
}: TokenizerFile): BytePairFiles | undefined {
  const { vocabulary, merges } = model;
  const options = readOptions(outline["model"] as Readonly<Record<string, unknown>>);
  if (options === undefined || merges === undefined) return undefined;
  if (!holdsIdsAlone(bytes, vocabulary)) return undefined;
  const lines = writeMerges(bytes, merges);
  if (lines === undefined) return undefined;
  return { vocabulary: bytes.subarray(...vocabulary), merges: lines, options };
}

function readOptions(model: Readonly<Record<string, unknown>>): BytePairOptions | undefined {
  const {
    type,
    dropout = null,
    ignore_merges: ignoreMerges = false,
    unk_token: unkToken = null,
    continuing_subword_prefix: continuingSubwordPrefix = null,
    end_of_word_suffix: endOfWordSuffix = null,
    fuse_unk: fuseUnk = false,
    byte_fallback: byteFallback = false,
    ...others
  } = model;
  const texts = { unkToken, continuingSubwordPrefix, endOfWordSuffix };
  const flags = { fuseUnk, byteFallback };
  if (type !== "BPE" || dropout !== null || ignoreMerges !== false) return undefined;
  if (Object.keys(others).length > 0) return undefined;
  if (!Object.values(texts).every((text) => text === null || typeof text === "string")) {
    return undefined;
  }
  if (!Object.values(flags).every((flag) => typeof flag === "boolean")) return undefined;
  const given = Object.entries({ ...texts, ...flags }).filter(([, value]) => value !== null);
  return Object.fromEntries(given);
}

/** Whether all members of the object are whole numbers: of a file, the library skips what is none. */
function holdsIdsAlone(bytes: Uint8Array, [start, end]: Extent): boolean {
  let hasDigits = true;
  for (let at = start + 1; at < end; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) {
      at += 1;
      while (bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
    } else if (byte === 0x3a) {
      hasDigits = false;
    } else if (byte >= 0x30 && byte <= 0x39) {
      hasDigits = true;
    } else if (byte === comma || byte === 0x7d) {
      if (!hasDigits) return false;
    } else if (byte > space) {
      return false;
    }
  }
  return true;
}

/** The comment that a file of merges may begin with; lines that begin so are skipped. */
const comment = Buffer.from("#version");

/** The merges, as lists of two spellings or as texts that hold both, each on a line. */
function writeMerges(bytes: Buffer, [start, end]: Extent): Uint8Array | undefined {
  // Escapes only shrink, and what parts two spellings in JSON is no shorter than a space.
  const lines = Buffer.allocUnsafe(end - start);
  let length = 0;
  let lineStart = 0;
  /** Lists that are open around this place, and spellings that the open line has. */
  let depth = 0;
  let parts = 0;
  for (let at = start; at < end; at++) {
    const byte = bytes[at] as number;
    if (byte === quote) {
      const stringEnd = endOfString(bytes, at);
      const from = length;
      length = writeSpelling({ bytes, start: at + 1, end: stringEnd, lines, length });
      parts += depth === 1 ? 2 : 1;
      if (countBreaks(lines, from, length) !== (depth === 1 ? 1 : 0)) return undefined;
      if (length === from || parts > 2) return undefined;
      lines[length++] = parts === 2 ? lineFeed : space;
      at = stringEnd;
    } else if (byte === openList) {
      depth += 1;
    } else if (byte === closeList) {
      depth -= 1;
    } else if (byte > space && byte !== comma) {
      return undefined;
    }
    if (depth > 2 || (depth === 1 && parts === 1)) return undefined;
    if (depth === 1 && parts === 2) {
      if (lines[lineStart] === comment[0] && holds(lines, lineStart, comment)) return undefined;
      lineStart = length;
      parts = 0;
    }
  }
  return lines.subarray(0, length);
}

/** The place of the quote that ends the string. */
function endOfString(bytes: Buffer, from: number): number {
  let at = from + 1;
  while (bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1;
  return at;
}

/** Writes the string between two quotes, and returns where it ends. */
function writeSpelling(place: {
  readonly bytes: Buffer;
  readonly start: number;
  readonly end: number;
  readonly lines: Buffer;
  readonly length: number;
}): number {
  const { bytes, start, end, lines } = place;
  let { length } = place;
  for (let at = start; at < end; at++) {
    if (bytes[at] === backslash) {
      const spelling = JSON.parse(bytes.toString("utf8", start - 1, end + 1)) as string;
      return place.length + lines.write(spelling, place.length);
    }
    lines[length++] = bytes[at] as number;
  }
  return length;
}

function holds(bytes: Buffer, from: number, part: Buffer): boolean {
  return bytes.subarray(from, from + part.length).equals(part);
}

/** Spaces between two places; ends of lines count as two, since no line can hold one. */
function countBreaks(bytes: Buffer, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) {
    if (bytes[at] === space) count += 1;
    else if (bytes[at] === lineFeed || bytes[at] === carriageReturn) count += 2;
  }
  return count;
}

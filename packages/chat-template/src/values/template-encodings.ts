import { TemplateError } from "../template-error.ts";
import { runtimeError } from "./template-value.ts";

/** The way an encoding writes code points. */
interface Encoding {
  /** The encoding's name in Python's messages. */
  readonly name: string;
  /** The bytes before the text (the byte order mark). */
  readonly mark: readonly number[];
  /** The bytes of a unit; with several, the lowest comes first unless `isBig`. */
  readonly unit: 1 | 2 | 4;
  readonly isBig: boolean;
  /** The first code point that it cannot write; absent if it writes all but surrogates. */
  readonly limit?: number;
  readonly reason: string;
}

const unicode = { mark: [], isBig: false, reason: "surrogates not allowed" } as const;
const encodings: Readonly<Record<string, Encoding>> = {
  utf8: { ...unicode, name: "utf-8", unit: 1 },
  utf8sig: { ...unicode, name: "utf-8", unit: 1, mark: [0xef, 0xbb, 0xbf] },
  utf16: { ...unicode, name: "utf-16", unit: 2, mark: [0xff, 0xfe] },
  utf16le: { ...unicode, name: "utf-16-le", unit: 2 },
  utf16be: { ...unicode, name: "utf-16-be", unit: 2, isBig: true },
  utf32: { ...unicode, name: "utf-32", unit: 4, mark: [0xff, 0xfe, 0, 0] },
  utf32le: { ...unicode, name: "utf-32-le", unit: 4 },
  utf32be: { ...unicode, name: "utf-32-be", unit: 4, isBig: true },
  ascii: { ...unicode, name: "ascii", unit: 1, limit: 128, reason: "ordinal not in range(128)" },
  latin1: { ...unicode, name: "latin-1", unit: 1, limit: 256, reason: "ordinal not in range(256)" },
};

/** Python's other names, without punctuation. */
const aliases: Readonly<Record<string, string>> = {
  u8: "utf8",
  utf: "utf8",
  cp65001: "utf8",
  u16: "utf16",
  u32: "utf32",
  utf16lele: "utf16le",
  unicodelittleunmarked: "utf16le",
  unicodebigunmarked: "utf16be",
  usascii: "ascii",
  us: "ascii",
  "646": "ascii",
  iso646us: "ascii",
  ansix341968: "ascii",
  iso88591: "latin1",
  "88591": "latin1",
  l1: "latin1",
  latin: "latin1",
  cp819: "latin1",
  iso8859: "latin1",
  "8859": "latin1",
  ibm819: "latin1",
  isoir100: "latin1",
};

/** Encodings that Python has and this module lacks, by name prefix. */
const foreign =
  /^(?:cp\d|windows|iso|big5|gb|hz|shift|sjis|euc|koi|mac|johab|ptcp|tis|kz|utf7|idna|punycode|raw|unicodeescape|mbcs|oem|rot|base|bz2|hex|quopri|uu|zlib|latin|l\d|arabic|greek|hebrew|cyrillic|undefined)/;

/**
 * Returns the encoding of that name.
 *
 * @throws TemplateError `LookupError` if Python does not know the name, and `TemplateRuntimeError` for Python's
 * encodings other than Unicode, ASCII and Latin-1.
 */
export function findEncoding(name: string): Encoding {
  const plain = name.toLowerCase().replaceAll(/[-_ .]/g, "");
  const found = encodings[aliases[plain] ?? plain];
  if (found !== undefined) return found;
  if (foreign.test(plain)) {
    throw runtimeError(
      `Cannot use the encoding ${name} in a chat template: expected utf-8, utf-16, utf-32, ascii or latin-1`,
    );
  }
  throw new TemplateError("LookupError", `unknown encoding: ${name}`);
}

/**
 * Encodes a text.
 *
 * @param errors - The treatment of characters that the encoding lacks: `strict`, `ignore`, `replace`,
 * `backslashreplace` or `xmlcharrefreplace`.
 * @throws TemplateError `UnicodeEncodeError` if `errors` is `strict`, `LookupError` for other words.
 */
export function encodeAs(text: string, encoding: Encoding, errors: string): Uint8Array {
  const characters = [...text];
  const bytes = [...encoding.mark];
  for (let index = 0; index < characters.length; index++) {
    const character = characters[index] as string;
    if (canWrite(character, encoding)) {
      writeCharacter(bytes, character, encoding);
      continue;
    }
    let end = index + 1;
    while (end < characters.length && !canWrite(characters[end] as string, encoding)) end += 1;
    const run = characters.slice(index, end);
    for (const each of replace(run, { encoding, errors, index })) {
      writeCharacter(bytes, each, encoding);
    }
    index = end - 1;
  }
  return Uint8Array.from(bytes);
}

function codeOf(character: string): number {
  return character.codePointAt(0) as number;
}

function canWrite(character: string, { limit }: Encoding): boolean {
  const code = codeOf(character);
  return limit === undefined ? code < 0xd800 || code > 0xdfff : code < limit;
}

/** The replacement of a run of characters. */
function replace(
  run: readonly string[],
  { encoding, errors, index }: { encoding: Encoding; errors: string; index: number },
): string {
  switch (errors) {
    case "strict":
      throw cannotEncode(run, encoding, index);
    case "ignore":
      return "";
    case "replace":
      return "?".repeat(run.length);
    case "backslashreplace":
      return run.map((character) => escapeCode(codeOf(character))).join("");
    case "xmlcharrefreplace":
      return run.map((character) => `&#${codeOf(character)};`).join("");
    default:
      throw new TemplateError("LookupError", `unknown error handler name '${errors}'`);
  }
}

function escapeCode(code: number): string {
  const digits = code.toString(16);
  if (code < 0x100) return `\\x${digits.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}

function cannotEncode(
  run: readonly string[],
  { name, reason }: Encoding,
  index: number,
): TemplateError {
  const [first = ""] = run;
  const what =
    run.length === 1
      ? `character '${escapeCode(codeOf(first))}' in position ${index}`
      : `characters in position ${index}-${index + run.length - 1}`;
  const message = `'${name}' codec can't encode ${what}: ${reason}`;
  return new TemplateError("UnicodeEncodeError", message);
}

function writeCharacter(bytes: number[], character: string, encoding: Encoding): void {
  const { unit, isBig, limit } = encoding;
  const code = codeOf(character);
  if (unit === 1) {
    if (limit === undefined) bytes.push(...Buffer.from(character, "utf8"));
    else bytes.push(code);
    return;
  }
  const units =
    unit === 4
      ? [code]
      : Array.from({ length: character.length }, (_, index) => character.charCodeAt(index));
  for (const value of units) {
    const places = Array.from({ length: unit }, (_, index) => (value >>> (8 * index)) & 0xff);
    bytes.push(...(isBig ? places.toReversed() : places));
  }
}

/**
 * Decodes bytes to a text.
 *
 * @throws TemplateError `UnicodeDecodeError` for invalid bytes if `errors` is `strict`, and `TemplateRuntimeError`
 * for invalid bytes with any other `errors`.
 */
export function decodeBytes(bytes: Uint8Array, encoding: Encoding, errors: string): string {
  const { mark, limit } = encoding;
  const hasMark = mark.length > 0 && mark.every((byte, index) => bytes[index] === byte);
  const body = hasMark ? bytes.subarray(mark.length) : bytes;
  const text =
    limit === undefined ? decodeUnicode(body, encoding) : Buffer.from(body).toString("latin1");
  const foreignIndex = limit === 128 ? body.findIndex((byte) => byte >= limit) : -1;
  if (text !== undefined && foreignIndex === -1) return text;
  if (errors !== "strict" || limit === undefined) {
    throw runtimeError(`Cannot decode broken ${encoding.name} in a chat template`);
  }
  const byte = reprByte(body[foreignIndex] as number);
  throw new TemplateError(
    "UnicodeDecodeError",
    `'${encoding.name}' codec can't decode byte ${byte} in position ${foreignIndex}: ${encoding.reason}`,
  );
}

function reprByte(byte: number): string {
  return `0x${byte.toString(16).padStart(2, "0")}`;
}

/** Returns `undefined` for invalid bytes. */
function decodeUnicode(bytes: Uint8Array, { unit, isBig }: Encoding): string | undefined {
  if (unit === 4) return decodeWide(bytes, isBig);
  const name = unit === 1 ? "utf-8" : isBig ? "utf-16be" : "utf-16le";
  try {
    return new TextDecoder(name, { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    return undefined;
  }
}

function decodeWide(bytes: Uint8Array, isBig: boolean): string | undefined {
  if (bytes.length % 4 !== 0) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const codes = Array.from({ length: bytes.length / 4 }, (_, index) =>
    view.getUint32(index * 4, !isBig),
  );
  const isText = codes.every((code) => code < 0xd800 || (code > 0xdfff && code <= 0x10ffff));
  return isText ? codes.map((code) => String.fromCodePoint(code)).join("") : undefined;
}

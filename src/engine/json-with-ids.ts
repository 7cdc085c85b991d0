import { assertInvariant } from "../errors.ts";
import { largestTokenId } from "./token-id.ts";

/** The digits of 0 to 999, three each. */
const digitTriples = Uint8Array.from(
  Array.from({ length: 1_000 }, (_, number) => `${number}`.padStart(3, "0")).join(""),
  (digit) => digit.charCodeAt(0),
);

const comma = ",".charCodeAt(0);
/** Digits of the largest id, and a comma. */
const mostBytes = `${largestTokenId},`.length;

/**
 * The JSON of an object with a member more, a list of ids, in UTF-8. A prompt has many thousands of ids
 * and is sent each turn; a general writer takes several times as long, and makes a text of it that has
 * to be made into bytes.
 */
export function jsonWithIds(
  fields: Readonly<Record<string, unknown>>,
  { name, ids }: { readonly name: string; readonly ids: readonly number[] },
): Uint8Array {
  const json = JSON.stringify(fields);
  const head = `${json.slice(0, -1)}${json === "{}" ? "" : ","}${JSON.stringify(name)}:[`;
  const headLength = Buffer.byteLength(head);
  const bytes = Buffer.allocUnsafe(headLength + mostBytesOf(ids) + 2);
  bytes.write(head);
  let end = writeIds(bytes, headLength, ids);
  bytes[end++] = "]".charCodeAt(0);
  bytes[end++] = "}".charCodeAt(0);
  return bytes.subarray(0, end);
}

/** Nearly all vocabularies are below a million. */
function mostBytesOf(ids: readonly number[]): number {
  let largest = 0;
  for (let index = 0; index < ids.length; index++) largest = Math.max(largest, ids[index]!);
  assertInvariant(largest <= largestTokenId, `an id is at most ${largestTokenId}`);
  return ids.length * (largest < 1_000_000 ? 7 : mostBytes);
}

/** Written with plain loops: it goes over a whole prompt each turn. */
function writeIds(bytes: Uint8Array, start: number, ids: readonly number[]): number {
  let end = start;
  for (let index = 0; index < ids.length; index++) {
    if (index > 0) bytes[end++] = comma;
    end = writeNumber(bytes, end, ids[index]!);
  }
  return end;
}

function writeNumber(bytes: Uint8Array, start: number, value: number): number {
  if (value >= 1_000) {
    const thousands = Math.floor(value / 1_000);
    return writeTriple(bytes, writeNumber(bytes, start, thousands), value - thousands * 1_000);
  }
  let end = start;
  const place = value * 3;
  if (value >= 100) bytes[end++] = digitTriples[place]!;
  if (value >= 10) bytes[end++] = digitTriples[place + 1]!;
  bytes[end++] = digitTriples[place + 2]!;
  return end;
}

function writeTriple(bytes: Uint8Array, start: number, value: number): number {
  const place = value * 3;
  bytes[start] = digitTriples[place]!;
  bytes[start + 1] = digitTriples[place + 1]!;
  bytes[start + 2] = digitTriples[place + 2]!;
  return start + 3;
}

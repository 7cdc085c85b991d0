import { UsageError } from "../../src/errors.ts";
import { freezeDict } from "../../packages/python-values/src/frozen-value.ts";
import {
  MAX_JSON_DEPTH,
  parsePythonJson,
} from "../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../packages/python-values/src/python-error.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict } from "../../packages/python-values/src/value.ts";
import { findMembers } from "../../src/json/json-members.ts";
import type { Extent } from "../../src/json/json-members.ts";
import type { SharedTable } from "./record-table.ts";

/**
 * Reads the records of a table's file, frozen. An episode reads a few of thousands: the file is validated at once,
 * and a record is parsed at its first read.
 *
 * @throws UsageError if the file is not a table.
 */
export function readRecords(bytes: Buffer, file: string): SharedTable {
  const text = bytes.toString("utf8");
  return findRecords(bytes, text) ?? readAllRecords(text, file);
}

/** Reads a JSON document as Python does. @throws UsageError naming the file if it is invalid. */
export function parseBundleJson(text: string, file: string): PyValue {
  try {
    return parsePythonJson(text);
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    throw new UsageError(`Cannot read ${file}: ${error.message}`, { cause: error });
  }
}

/** The number of digits that Python refuses to read as an integer. */
const refusedDigits = 4301;

/**
 * True if Python reads the text like JavaScript does, completely and in parts, unless it nests too deep. JSON that
 * JavaScript accepts is also JSON to Python, except for very long integers.
 */
export function isAlikeJson(text: string): boolean {
  return isJson(text) && !hasTooLongInteger(text);
}

/** True if the text has a run of `refusedDigits` digits. Every such run includes one of the tested places. */
function hasTooLongInteger(text: string): boolean {
  for (let at = 0; at < text.length; at += refusedDigits) {
    if (!isDigit(text, at)) continue;
    let [start, end] = [at, at + 1];
    while (isDigit(text, start - 1)) start -= 1;
    while (isDigit(text, end)) end += 1;
    if (end - start >= refusedDigits) return true;
  }
  return false;
}

function isDigit(text: string, at: number): boolean {
  const unit = text.charCodeAt(at);
  return unit >= 0x30 && unit <= 0x39;
}

/** Finds the records if reading any of them later cannot fail; otherwise returns `undefined`. */
function findRecords(bytes: Buffer, text: string): SharedTable | undefined {
  const found = findMembers(bytes, 0, {}, MAX_JSON_DEPTH - 1)?.members;
  if (found === undefined || !isAlikeJson(text)) return undefined;
  for (const [id, [start]] of found) {
    if (id.includes("\\") || bytes[start] !== openBrace) return undefined;
  }
  return new FoundRecords(bytes, found);
}

const openBrace = 0x7b;

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function readAllRecords(text: string, file: string): SharedTable {
  const table = parseBundleJson(text, file);
  if (!isPyDict(table)) throw new UsageError(`Cannot read ${file}: expected an object`);
  const records = new Map<string, PyDict>();
  for (const [id, record] of table) {
    if (!isPyDict(record)) throw new UsageError(`Cannot read ${file}: "${id}" is not an object`);
    records.set(id, freezeDict(record));
  }
  return records;
}

/** Records by id, in the file's order, each parsed at its first read. */
class FoundRecords implements SharedTable {
  readonly #bytes: Buffer;
  readonly #places: ReadonlyMap<string, Extent>;
  readonly #known = new Map<string, PyDict>();

  constructor(bytes: Buffer, places: ReadonlyMap<string, Extent>) {
    this.#bytes = bytes;
    this.#places = places;
  }

  get size(): number {
    return this.#places.size;
  }

  has(id: string): boolean {
    return this.#places.has(id);
  }

  get(id: string): PyDict | undefined {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const json = this.jsonOf(id);
    if (json === undefined) return undefined;
    const record = freezeDict(parsePythonJson(json) as PyDict);
    this.#known.set(id, record);
    return record;
  }

  jsonOf(id: string): string | undefined {
    const place = this.#places.get(id);
    return place && this.#bytes.toString("utf8", ...place);
  }

  keys(): MapIterator<string> {
    return this.#places.keys();
  }

  *values(): MapIterator<PyDict> {
    for (const id of this.keys()) yield this.get(id) as PyDict;
  }

  *entries(): MapIterator<[string, PyDict]> {
    for (const id of this.keys()) yield [id, this.get(id) as PyDict];
  }

  [Symbol.iterator](): MapIterator<[string, PyDict]> {
    return this.entries();
  }

  forEach(
    call: (record: PyDict, id: string, records: ReadonlyMap<string, PyDict>) => void,
    self?: unknown,
  ): void {
    for (const [id, record] of this) call.call(self, record, id, this);
  }
}

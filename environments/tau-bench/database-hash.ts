import { createHash } from "node:crypto";
import type { Hash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { compareCodePoints } from "../../packages/python-values/src/text/compare-code-points.ts";
import { reprString } from "../../packages/python-values/src/text/repr.ts";
import { hashableText, pairText } from "./database-text.ts";
import { JsonText } from "./json-text.ts";
import type { RecordTable, SharedTable } from "./record-table.ts";
import type { SharedTables, Tables } from "./tau-domain.ts";

/** The number of characters of text that are made before other work runs. */
const textPerTurn = 16_384;

/** A shared table in the order and the text that τ-bench hashes. */
interface TableText {
  /** The text between the last table's records and this table's. */
  readonly opening: string;
  readonly name: string;
  /** The records' ids, sorted by code point. */
  readonly ids: readonly string[];
  /** The texts of all pairs of id and record, separated by commas. */
  readonly records: Buffer;
  /** `starts[i]` is the byte index at which the text of `ids[i]` starts in `records`. */
  readonly starts: readonly number[];
  /** The hash state before this table. */
  readonly before: Hash;
}

/**
 * Computes τ-bench's own hash of complete databases that differ from a shared base in a few records. The base's
 * text is made once, in short steps. Afterwards only written records are converted to text again, and hashing
 * starts at the first table with any.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/base.py (`get_data_hash`).
 */
export class DatabaseHasher {
  readonly #shared: SharedTables;
  #tables: Promise<readonly TableText[]> | undefined;

  constructor(shared: SharedTables) {
    this.#shared = shared;
  }

  /** The SHA-256 of the database's text, as 64 hexadecimal digits. */
  async hash(database: Tables): Promise<string> {
    this.#tables ??= makeTableTexts(this.#shared);
    const tables = await this.#tables;
    const changed = tables.findIndex(({ name }) => (database[name]?.changes.size ?? 0) > 0);
    const first = changed === -1 ? tables.length - 1 : changed;
    const hash = tables[first]?.before.copy() ?? createHash("sha256").update("(");
    for (const table of tables.slice(first)) updateTable(hash, table, database[table.name]);
    return hash.update(tables.length === 1 ? ",)" : ")").digest("hex");
  }
}

/** Adds a table to the hash, with written records in place of the base's. */
function updateTable(hash: Hash, table: TableText, current: RecordTable | undefined): void {
  hash.update(table.opening);
  let count = 0;
  for (const piece of tablePieces(table, current)) {
    if (count > 0) hash.update(", ");
    hash.update(piece.text);
    count += piece.count;
  }
  hash.update(count === 1 ? ",))" : "))");
}

/** The text of consecutive records. */
interface Piece {
  readonly text: string | Buffer;
  readonly count: number;
}

function* tablePieces(table: TableText, current: RecordTable | undefined): Generator<Piece> {
  const changes = [...(current?.changes ?? [])].sort(([a], [b]) => compareCodePoints(a, b));
  let from = 0;
  for (const [id, record] of changes) {
    const place = placeOf(table.ids, id);
    yield* unchangedPiece(table, from, place);
    if (record !== null) yield { text: pairText(id, record), count: 1 };
    from = table.ids[place] === id ? place + 1 : place;
  }
  yield* unchangedPiece(table, from, table.ids.length);
}

/** The base's records from one index to another (exclusive). */
function* unchangedPiece(table: TableText, from: number, to: number): Generator<Piece> {
  if (from === to) return;
  const end = to === table.ids.length ? table.records.length : (table.starts[to] as number) - 2;
  yield { text: table.records.subarray(table.starts[from], end), count: to - from };
}

/** The index of the first of the sorted ids that does not precede the id. */
function placeOf(ids: readonly string[], id: string): number {
  let low = 0;
  let high = ids.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareCodePoints(ids[middle] as string, id) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

async function makeTableTexts(shared: SharedTables): Promise<readonly TableText[]> {
  const names = Object.keys(shared).sort(compareCodePoints);
  const hash = createHash("sha256").update("(");
  const texts: TableText[] = [];
  for (const name of names) {
    const opening = `${texts.length === 0 ? "" : ", "}(${reprString(name)}, (`;
    const records = await makeRecordTexts(shared[name] as SharedTable);
    const table = { opening, name, ...records, before: hash.copy() };
    texts.push(table);
    updateTable(hash, table, undefined);
  }
  return texts;
}

async function makeRecordTexts(
  table: SharedTable,
): Promise<Pick<TableText, "ids" | "records" | "starts">> {
  const ids = [...table.keys()].sort(compareCodePoints);
  const texts = new JsonText();
  const textOf = (id: string): string => {
    const json = table.jsonOf?.(id);
    return json === undefined ? hashableText(table.get(id) ?? null) : texts.of(json);
  };
  const parts: Buffer[] = [];
  const starts: number[] = [];
  let length = 0;
  let sinceTurn = 0;
  for (const id of ids) {
    const separator = length === 0 ? "" : ", ";
    const part = Buffer.from(`${separator}(${reprString(id)}, ${textOf(id)})`);
    starts.push(length === 0 ? 0 : length + 2);
    parts.push(part);
    length += part.length;
    sinceTurn += part.length;
    if (sinceTurn >= textPerTurn) {
      await setImmediate();
      sinceTurn = 0;
    }
  }
  return { ids, starts, records: Buffer.concat(parts) };
}

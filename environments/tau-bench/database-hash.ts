import { createHash } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { compareCodePoints } from "../../src/python/compare-code-points.ts";
import { reprString } from "../../src/python/repr.ts";
import { pairText, tupleText } from "./database-text.ts";
import type { RecordTable, SharedTable } from "./record-table.ts";
import type { SharedTables, Tables } from "./tau-domain.ts";

/** How much text is made before others get a turn, in characters. */
const textPerTurn = 65_536;

/** A shared table in the order and the text that τ-bench hashes. */
interface TableText {
  readonly name: string;
  /** The records' ids, sorted by code point. */
  readonly ids: readonly string[];
  /** `records.get(id)` is the text of the pair of id and record. */
  readonly records: ReadonlyMap<string, string>;
  /** The text of the whole table. */
  readonly whole: Buffer;
}

/**
 * Computes τ-bench's own hash of whole databases that differ from a shared base in a few records.
 * The base's text is made once, in short steps; after that a hash remakes only what was written.
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
    const hash = createHash("sha256").update("(");
    for (const [place, table] of tables.entries()) {
      hash.update(`${place === 0 ? "" : ", "}(${reprString(table.name)}, `);
      hash.update(currentText(table, database[table.name]));
      hash.update(")");
    }
    return hash.update(tables.length === 1 ? ",)" : ")").digest("hex");
  }
}

/** The table's text with the records that were written put in their places. */
function currentText(table: TableText, current: RecordTable | undefined): string | Buffer {
  if (current === undefined || current.changes.size === 0) return table.whole;
  const added = [...current.changes.keys()].filter((id) => !table.records.has(id));
  const ids = added.length === 0 ? table.ids : [...table.ids, ...added].sort(compareCodePoints);
  const parts = ids.flatMap((id) => {
    const own = current.changes.get(id);
    if (own === null) return [];
    return [own === undefined ? (table.records.get(id) as string) : pairText(id, own)];
  });
  return tupleText(parts);
}

async function makeTableTexts(shared: SharedTables): Promise<readonly TableText[]> {
  const names = Object.keys(shared).sort(compareCodePoints);
  const texts: TableText[] = [];
  for (const name of names) texts.push(await makeTableText(name, shared[name] as SharedTable));
  return texts;
}

async function makeTableText(name: string, table: SharedTable): Promise<TableText> {
  const ids = [...table.keys()].sort(compareCodePoints);
  const records = new Map<string, string>();
  let untilTurn = textPerTurn;
  for (const id of ids) {
    const text = pairText(id, table.get(id) ?? null);
    records.set(id, text);
    untilTurn -= text.length;
    if (untilTurn <= 0) {
      await setImmediate();
      untilTurn = textPerTurn;
    }
  }
  return { name, ids, records, whole: Buffer.from(tupleText([...records.values()])) };
}

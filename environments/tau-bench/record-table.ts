import { CopyOnWriteTable } from "../../src/environment/state/copy-on-write-table.ts";
import { keyError } from "../../packages/python-values/src/get-item.ts";
import { assertHashable } from "../../packages/python-values/src/hashable.ts";
import type { MutableDict } from "../../packages/python-values/src/mutable-value.ts";
import { copyDict } from "../../packages/python-values/src/mutable-value.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";

/** A table of τ-bench's database in one episode. */
export type RecordTable = CopyOnWriteTable<PyDict, MutableDict>;

/** A table of the shared database. */
export interface SharedTable extends ReadonlyMap<string, PyDict> {
  /** Returns the JSON of a record, or `undefined`. Absent if the records were not read from JSON. */
  jsonOf?(id: string): string | undefined;
}

/** Opens an episode's view of a shared table. */
export function openTable(base: SharedTable): RecordTable {
  return new CopyOnWriteTable({ base, copy: copyDict });
}

/**
 * The record under a key of any type, like Python's `key in table` followed by `table[key]`.
 *
 * @throws PythonError `TypeError` if the key is not hashable.
 */
export function findRecord(table: RecordTable, key: PyValue): PyDict | undefined {
  assertHashable(key);
  return typeof key === "string" ? table.get(key) : undefined;
}

/**
 * The record under a key, for reading, like Python's `table[key]`.
 *
 * @throws PythonError `KeyError` if it does not exist.
 */
export function readRecord(table: RecordTable, key: PyValue): PyDict {
  const record = findRecord(table, key);
  if (record === undefined) throw keyError(key);
  return record;
}

/**
 * The record under a key, for writing.
 *
 * @throws PythonError like `readRecord()`.
 */
export function ownRecord(table: RecordTable, key: PyValue): MutableDict {
  assertHashable(key);
  const record = typeof key === "string" ? table.own(key) : undefined;
  if (record === undefined) throw keyError(key);
  return record;
}

import type { RecordTable, SharedTable } from "./record-table.ts";
import { openTable } from "./record-table.ts";
import type { TauTool } from "./tau-tool.ts";

/** The tables of a database in one episode, by name. */
export type Tables = Readonly<Record<string, RecordTable>>;

/** The tables that all episodes share, by name. */
export type SharedTables = Readonly<Record<string, SharedTable>>;

/** A domain of τ-bench: its tables and tools, without any data. */
export interface TauDomain<Database extends Tables = Tables> {
  /** The domain's name in the original's modules and the bundle's folders: `retail` or `airline`. */
  readonly name: string;
  /** Names of the tables, which are also the names of the bundle's files. */
  readonly tableNames: readonly (keyof Database & string)[];
  readonly splits: readonly string[];
  readonly tools: ReadonlyMap<string, TauTool<Database>>;
}

/** Tools by name. */
export function toolMap<Database>(
  tools: readonly TauTool<Database>[],
): ReadonlyMap<string, TauTool<Database>> {
  return new Map(tools.map((tool) => [tool.name, tool]));
}

/** Opens an episode's view of the shared tables, without copying. */
export function openDatabase<Database extends Tables>(
  domain: TauDomain<Database>,
  shared: SharedTables,
): Database {
  return Object.fromEntries(
    domain.tableNames.map((name) => [name, openTable(shared[name] ?? new Map())]),
  ) as unknown as Database;
}

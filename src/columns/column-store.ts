import type { ColumnParts, ColumnPart } from "./column-part.ts";
import type { ColumnName } from "./column-specs.ts";

/** Keeps the bytes of the columns that an engine returned. */
export interface ColumnStore {
  /**
   * Takes over the bytes of a reply's parts. Waits while too many bytes are not written yet.
   *
   * @returns the parts as they are recorded and put into rows.
   * @throws UsageError if the disk fails.
   */
  keep(columns: ColumnParts): Promise<ColumnParts>;
  /** Returns true if a file has the part with this hash, synced. Absent if the bytes are kept in memory only. */
  has?(hash: string): Promise<boolean>;
}

/**
 * Keeps the bytes in memory, with the parts themselves: `part.bytes` has them while the part is in use. It is not
 * listed among the part's members, so records and hashes are the same as with files.
 */
export const memoryColumns: ColumnStore = {
  keep: (columns) => Promise.resolve(mapParts(columns, hideBytes)),
};

/** Maps each part of columns. */
export function mapParts(columns: ColumnParts, map: (part: ColumnPart) => ColumnPart): ColumnParts {
  const mapped: Partial<Record<ColumnName, readonly ColumnPart[]>> = {};
  for (const name of Object.keys(columns) as ColumnName[]) mapped[name] = columns[name]!.map(map);
  return mapped;
}

function hideBytes({ bytes, ...part }: ColumnPart): ColumnPart {
  return Object.defineProperty(part, "bytes", { value: bytes, enumerable: false });
}

import { UsageError } from "../errors.ts";
import { isObject } from "../values/is-object.ts";

/** The member of `found` in the `run.json` of a run with an engine that returns messages. */
export const messagesMember = { returnsMessages: true } as const;

/**
 * True if a run was played with an engine that returns messages, by the `found` of its `run.json`. Its episodes have no
 * token ids and no training rows.
 */
export function hasNoRows(found: unknown): boolean {
  return isObject(found) && found["returnsMessages"] === true;
}

/**
 * Refuses a run without training rows.
 *
 * @param doing - The action that needs rows, such as `export runs/first`.
 * @throws UsageError
 */
export function requireRunRows(found: unknown, doing: string): void {
  if (!hasNoRows(found)) return;
  throw new UsageError(
    `Cannot ${doing}: it was played with an engine that returns messages without token ids, so it has no training ` +
      "rows; `report`, `show`, `view`, `compare` and `export --to csv` read its episodes",
  );
}

import { hash } from "node:crypto";

/**
 * The SHA-256, in hexadecimal digits, of a row's JSON as `JSON.stringify()` spells it: of its line
 * without the line feed. A training row's hash stands in its episode's line, and the hash of that line
 * in the event that tells of it, so that a row that was changed afterwards does not pass, whatever was
 * changed in it. A row that another program wrote again with other spaces is still the same row.
 */
export function hashRow(row: unknown): string {
  return hash("sha256", JSON.stringify(row), "hex");
}

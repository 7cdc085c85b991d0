import { hash } from "node:crypto";

/**
 * Returns the SHA-256 of a row's JSON as `JSON.stringify()` writes it, in hexadecimal digits. An episode's line
 * contains the hashes of its training rows, and the event of an episode contains the hash of that line, so any later
 * change is found. A row that another program wrote again with other spaces has the same hash.
 */
export function hashRow(row: unknown): string {
  return hash("sha256", JSON.stringify(row), "hex");
}

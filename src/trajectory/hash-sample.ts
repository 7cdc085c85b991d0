import { createHash } from "node:crypto";

/**
 * The SHA-256, in hexadecimal digits, of a training row's JSON as `JSON.stringify()` spells it: of its
 * line in `samples.jsonl` without the line feed. The episode's line keeps it, so that a row that was
 * changed afterwards does not pass, whatever was changed in it. A row that another program wrote again
 * with other spaces is still the same row.
 */
export function hashSample(sample: unknown): string {
  return createHash("sha256").update(JSON.stringify(sample)).digest("hex");
}

import { hashColumnBytes, type ColumnPart } from "../columns/column-part.ts";
import type { ColumnSource } from "../columns/column-source.ts";
import { UsageError } from "../errors.ts";

/** Reads the bytes of a part, and compares them with its hash. Returns a fault if they are missing or differ. */
export async function readSoundPart(
  source: ColumnSource,
  part: ColumnPart,
): Promise<{ readonly bytes: Uint8Array } | { readonly fault: string }> {
  let bytes: Uint8Array;
  try {
    bytes = await source.read(part);
  } catch (error) {
    if (error instanceof UsageError) return { fault: error.message };
    throw error;
  }
  const hash = hashColumnBytes(bytes);
  if (hash === part.hash) return { bytes };
  return { fault: `its bytes have the hash ${hash}, so they were changed` };
}

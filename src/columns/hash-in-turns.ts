import { createHash } from "node:crypto";
import { isShareOver, takeTurn } from "../async/take-turn.ts";
import { columnHashDigits, hashColumnBytes } from "./column-part.ts";

/** Number of bytes that are hashed or copied without a pause. */
export const bytesAtOnce = 2 ** 18;

/** Returns `hashColumnBytes()` of the bytes, and lets other work run in between. */
export async function hashInTurns(bytes: Uint8Array): Promise<string> {
  if (bytes.length <= bytesAtOnce) return hashColumnBytes(bytes);
  const hash = createHash("sha256");
  for (let place = 0; place < bytes.length; place += bytesAtOnce) {
    if (isShareOver()) await takeTurn();
    hash.update(bytes.subarray(place, place + bytesAtOnce));
  }
  return hash.digest("hex").slice(0, columnHashDigits);
}

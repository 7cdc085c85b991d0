import { BytePool } from "../../text/lent-bytes.ts";

/** Memory for packed episodes. Journals must not return it, as they return `acquireBytes()`, before all lines are written. */
export const packedBytes = new BytePool({
  largest: 32 * 1024 * 1024,
  mostKept: 128 * 1024 * 1024,
});

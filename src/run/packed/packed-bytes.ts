import { BytePool } from "../../text/lent-bytes.ts";

/**
 * Memory for packed episodes. Journals must not return it to the pool before all lines are written, unlike blocks of
 * `acquireBytes()`.
 */
export const packedBytes = new BytePool({
  largest: 32 * 1024 * 1024,
  mostKept: 128 * 1024 * 1024,
});

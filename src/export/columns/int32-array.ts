import type { ColumnArray } from "./column-sink.ts";

/** Returns an int32 array of lists in memory, one after the other. */
export function int32Array(shape: readonly number[], lists: readonly Int32Array[]): ColumnArray {
  return {
    type: "int32",
    shape,
    async *bytes() {
      await Promise.resolve();
      for (const { buffer, byteOffset, byteLength } of lists) {
        if (byteLength > 0) yield new Uint8Array(buffer, byteOffset, byteLength);
      }
    },
  };
}

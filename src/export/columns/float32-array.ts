import type { ColumnArray } from "./column-sink.ts";

/** Returns a float32 array of a list in memory. */
export function float32Array(shape: readonly number[], values: Float32Array): ColumnArray {
  return {
    type: "float32",
    shape,
    async *bytes() {
      const { buffer, byteOffset, byteLength } = values;
      if (byteLength > 0) {
        yield await Promise.resolve(new Uint8Array(buffer, byteOffset, byteLength));
      }
    },
  };
}

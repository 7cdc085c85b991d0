/** The element type of an exported array of ids, by numpy's name. Little-endian. */
export type IdType = "int8" | "uint8" | "int16" | "uint16" | "int32";

/** The element type of an exported array, by numpy's name. Little-endian. */
export type ArrayType = IdType | "float32";

const sizes = { int8: 1, uint8: 1, int16: 2, uint16: 2, int32: 4, float32: 4 } as const;

/** All element types. Programs that read exports have the same list. */
export const arrayTypes = Object.keys(sizes) as readonly ArrayType[];

/** Returns the number of bytes of an element. */
export function elementBytes(type: ArrayType): 1 | 2 | 4 {
  return sizes[type];
}

/**
 * Converts unsigned ids to an element type that has all of them. Returns the same bytes if both types write ids in the
 * same way.
 *
 * @param from - The number of bytes of a given id.
 */
export function widenIds(bytes: Uint8Array, from: 1 | 2 | 4, to: IdType): Uint8Array {
  const size = elementBytes(to);
  if (size === from) return bytes;
  const ids =
    from === 1
      ? bytes
      : // A copy, because lists of 16-bit numbers begin at a multiple of two.
        new Uint16Array(new Uint8Array(bytes).buffer);
  const { buffer } = size === 2 ? Uint16Array.from(ids) : Int32Array.from(ids);
  return new Uint8Array(buffer);
}

/** Returns the narrowest of the given types that can represent all expert ids of a layer. */
export function expertType(expertCount: number, types: readonly IdType[]): IdType {
  const limits = { int8: 128, uint8: 256, int16: 32_768, uint16: 65_536, int32: 2 ** 31 };
  return types.find((type) => expertCount <= limits[type]) ?? "int32";
}

/** The formats of floats in weights files, as safetensors names them. */
export type FloatFormat = "F32" | "F16" | "BF16";

/** Bytes of one float. */
export const FLOAT_BYTES: Readonly<Record<FloatFormat, number>> = { F32: 4, F16: 2, BF16: 2 };

/** True if a format can be read. */
export function isFloatFormat(name: unknown): name is FloatFormat {
  return typeof name === "string" && Object.hasOwn(FLOAT_BYTES, name);
}

/**
 * Reads little-endian floats. The result is exact, because single precision contains all values of
 * the three formats.
 */
export function decodeFloats(bytes: Uint8Array<ArrayBuffer>, format: FloatFormat): Float32Array {
  const count = bytes.byteLength / FLOAT_BYTES[format];
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const floats = new Float32Array(count);
  if (format === "F32") {
    for (let index = 0; index < count; index++) floats[index] = view.getFloat32(index * 4, true);
    return floats;
  }
  if (format === "F16") {
    for (let index = 0; index < count; index++) {
      floats[index] = decodeHalf(view.getUint16(index * 2, true));
    }
    return floats;
  }
  const bits = new Uint32Array(floats.buffer);
  for (let index = 0; index < count; index++) bits[index] = view.getUint16(index * 2, true) << 16;
  return floats;
}

/** Reads a half-precision float: 1 bit of sign, 5 of exponent, 10 of fraction. */
function decodeHalf(bits: number): number {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Infinity : NaN;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  return sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

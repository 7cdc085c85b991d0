import { describe, expect, test } from "vitest";
import { decodeFloats } from "./float-format.ts";

function bytes(...units: readonly number[]): Uint8Array<ArrayBuffer> {
  return new Uint8Array(Uint16Array.from(units).buffer);
}

describe("decodeFloats()", () => {
  test("reads half precision: normal, smallest, infinite, not a number", () => {
    const units = [0x3c00, 0xc100, 0x7bff, 0x0001, 0x83ff, 0x8000, 0x7c00, 0xfc00, 0x7e00];
    expect([...decodeFloats(bytes(...units), "F16")]).toEqual([
      1,
      -2.5,
      65_504,
      2 ** -24,
      -1023 * 2 ** -24,
      -0,
      Infinity,
      -Infinity,
      NaN,
    ]);
  });

  test("reads the upper half of single precision", () => {
    expect([...decodeFloats(bytes(0x3f80, 0xc020, 0x0001), "BF16")]).toEqual([
      1,
      -2.5,
      Math.fround(2 ** -133),
    ]);
  });

  test("reads single precision at any offset", () => {
    const buffer = new Uint8Array(9);
    new DataView(buffer.buffer).setFloat32(1, -0.1, true);
    new DataView(buffer.buffer).setFloat32(5, 3, true);
    expect([...decodeFloats(buffer.subarray(1), "F32")]).toEqual([Math.fround(-0.1), 3]);
  });
});

/**
 * WebAssembly instructions in binary form, as nested expressions: `i32.add(a, b)` is the code that
 * leaves the sum on the stack. Contains only the instructions that the kernels need.
 *
 * **Source:** WebAssembly core specification 2.0, chapter 5 (binary format).
 */

/** Encoded instructions: bytes and pieces in order. */
export type Code = readonly (number | Code)[];

/** The types of values in kernels. */
export type ValueType = "i32" | "f32" | "f64" | "v128";

/** Returns the bytes of code. */
export function toBytes(code: Code): number[] {
  const bytes: number[] = [];
  const append = (pieces: Code): void => {
    for (const piece of pieces) {
      if (typeof piece === "number") bytes.push(piece);
      else append(piece);
    }
  };
  append(code);
  return bytes;
}

/** Encodes an unsigned number in LEB128. */
export function encodeUnsigned(value: number): Code {
  const bytes: number[] = [];
  let rest = value;
  do {
    const low = rest % 128;
    rest = Math.floor(rest / 128);
    bytes.push(rest === 0 ? low : low + 128);
  } while (rest !== 0);
  return bytes;
}

/** Encodes a 32-bit signed number in LEB128. */
function encodeSigned(value: number): Code {
  const bytes: number[] = [];
  let rest = value | 0;
  for (;;) {
    const low = rest & 0x7f;
    rest >>= 7;
    const isLast = (rest === 0 && (low & 0x40) === 0) || (rest === -1 && (low & 0x40) !== 0);
    bytes.push(isLast ? low : low | 0x80);
    if (isLast) return bytes;
  }
}

/** Concatenates pieces of code. */
export function sequence(...parts: readonly Code[]): Code {
  return parts;
}

type Binary = (left: Code, right: Code) => Code;
type Unary = (value: Code) => Code;

function binary(...opcode: Code): Binary {
  return (left, right) => [left, right, opcode];
}

function unary(...opcode: Code): Unary {
  return (value) => [value, opcode];
}

/** Returns the opcode of a SIMD instruction. */
function simd(opcode: number): Code {
  return [0xfd, encodeUnsigned(opcode)];
}

/** The alignment of addresses in memory instructions, as a power of two. */
const ALIGNED_TO_4 = 2;

/** Returns a memory instruction's opcode with the offset that it adds to an address. */
function at(opcode: Code, offset: number): Code {
  return [opcode, ALIGNED_TO_4, encodeUnsigned(offset)];
}

const EMPTY_BLOCK_TYPE = 0x40;
const END = 0x0b;

/** Control flow. A label counts enclosing blocks outwards, 0 being the innermost. */
export const control = {
  block: (...body: readonly Code[]): Code => [0x02, EMPTY_BLOCK_TYPE, body, END],
  loop: (...body: readonly Code[]): Code => [0x03, EMPTY_BLOCK_TYPE, body, END],
  ifTrue: (condition: Code, ...body: readonly Code[]): Code => [
    condition,
    [0x04, EMPTY_BLOCK_TYPE],
    body,
    END,
  ],
  branch: (label: number): Code => [0x0c, label],
  branchIf: (label: number, condition: Code): Code => [condition, 0x0d, label],
  call: (functionIndex: number, ...operands: readonly Code[]): Code => [
    operands,
    [0x10, encodeUnsigned(functionIndex)],
  ],
} as const;

/** Integers of 32 bits, compared and shifted as unsigned. They are also addresses. */
export const i32 = {
  constant: (value: number): Code => [0x41, encodeSigned(value)],
  load: (address: Code, offset = 0): Code => [address, at([0x28], offset)],
  equal: binary(0x46),
  lessThan: binary(0x49),
  atLeast: binary(0x4f),
  add: binary(0x6a),
  subtract: binary(0x6b),
  multiply: binary(0x6c),
  and: binary(0x71),
  shiftLeft: binary(0x74),
  shiftRight: binary(0x76),
  /** Evaluates both operands twice. */
  smaller: (left: Code, right: Code): Code => [left, right, i32.lessThan(left, right), 0x1b],
} as const;

/** Single-precision floats. */
export const f32 = {
  constant: (value: number): Code => [0x43, ...new Uint8Array(Float32Array.of(value).buffer)],
  store: (address: Code, value: Code): Code => [address, value, at([0x38], 0)],
  squareRoot: unary(0x91),
  add: binary(0x92),
  divide: binary(0x95),
} as const;

/** Double-precision floats. */
export const f64 = {
  add: binary(0xa0),
} as const;

/** Vectors of four single floats, two doubles, or raw bits. */
export const v128 = {
  load: (address: Code, offset = 0): Code => [address, at(simd(0x00), offset)],
  /** Loads one float into all four lanes. */
  loadSplat: (address: Code): Code => [address, at(simd(0x09), 0)],
  store: (address: Code, value: Code, offset = 0): Code => [address, value, at(simd(0x0b), offset)],
  /** Stores one lane of 32 bits. */
  storeLane: (address: Code, value: Code, to: { lane: number; offset: number }): Code => [
    address,
    value,
    at(simd(0x5a), to.offset),
    to.lane,
  ],
  and: binary(simd(0x4e)),
} as const;

/** Four integers of 32 bits. */
export const i32x4 = {
  constant: (value: number): Code => [i32.constant(value), simd(0x11)],
  add: binary(simd(0xae)),
  shiftLeft: (value: Code, bits: number): Code => [value, i32.constant(bits), simd(0xab)],
} as const;

/** Four single-precision floats. */
export const f32x4 = {
  splat: unary(simd(0x13)),
  constant: (value: number): Code => [f32.constant(value), simd(0x13)],
  lane: (value: Code, lane: number): Code => [value, simd(0x1f), lane],
  atLeast: binary(simd(0x46)),
  negate: unary(simd(0xe1)),
  add: binary(simd(0xe4)),
  subtract: binary(simd(0xe5)),
  multiply: binary(simd(0xe6)),
  divide: binary(simd(0xe7)),
  /** NaN if one operand is NaN. */
  max: binary(simd(0xe9)),
  /** The right operand if it is smaller, otherwise the left: one instruction on processors. */
  smaller: binary(simd(0xea)),
  /** The right operand if it is larger, otherwise the left. */
  larger: binary(simd(0xeb)),
  /** Lanes in the given order, such as `[2, 3, 2, 3]`. Evaluates its operand twice. */
  shuffle: (value: Code, lanes: readonly [number, number, number, number]): Code => [
    value,
    value,
    simd(0x0d),
    lanes.map((lane) => [0, 1, 2, 3].map((byte) => lane * 4 + byte)),
  ],
} as const;

/** Two double-precision floats. */
export const f64x2 = {
  zero: [0x44, 0, 0, 0, 0, 0, 0, 0, 0, simd(0x14)] as Code,
  lane: (value: Code, lane: number): Code => [value, simd(0x21), lane],
  add: binary(simd(0xf0)),
  /** Converts the two low floats of four. */
  fromLowFloats: unary(simd(0x5f)),
} as const;

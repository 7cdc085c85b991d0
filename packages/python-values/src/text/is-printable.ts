import { nonPrintableRanges } from "./non-printable-ranges.ts";

let bounds: Int32Array | undefined;

/**
 * True if Python prints the code point unescaped in a `repr()`: all but the categories C* and Z*, and the space.
 * Uses Unicode 14.0 as CPython 3.11 does, not this machine's version.
 */
export function isPrintable(codePoint: number): boolean {
  if (codePoint < 0x7f) return codePoint >= 0x20;
  bounds ??= readRanges(nonPrintableRanges);
  let low = 0;
  let high = bounds.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((bounds[middle] as number) <= codePoint) low = middle + 1;
    else high = middle;
  }
  // With an odd number of bounds at or below it, the code point lies inside a range.
  return low % 2 === 0;
}

/** Decodes the ranges: start and exclusive end of each, from gap and length in base 36. */
function readRanges(text: string): Int32Array {
  const steps = text.split(" ").map((step) => Number.parseInt(step, 36));
  let place = 0;
  return Int32Array.from(steps, (step) => (place += step));
}

import { nonPrintableRanges } from "./non-printable-ranges.ts";

let bounds: Int32Array | undefined;

/**
 * Whether Python prints the code point as it is in a `repr()`: anything but the categories C* and
 * Z*, and the space. By Unicode 14.0, CPython 3.11's, whatever this machine's own version is.
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
  // An odd number of bounds at or below the code point: it lies inside a range.
  return low % 2 === 0;
}

/** Start and exclusive end of each range in turn, from gap and length in base 36. */
function readRanges(text: string): Int32Array {
  const steps = text.split(" ").map((step) => Number.parseInt(step, 36));
  let place = 0;
  return Int32Array.from(steps, (step) => (place += step));
}

/**
 * The characters that Python's `str.isspace()` and `\s` match, as a class of JavaScript's regular expressions,
 * which differ.
 */
export const pythonSpaces = String.raw`\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000`;

/**
 * True if Python's `str.isspace()` accepts the UTF-16 code unit: U+001C to U+001F and U+0085 count, U+FEFF does
 * not. JavaScript's own `trim()` differs for all of them.
 */
export function isPythonSpace(unit: number): boolean {
  if (unit <= 0x20) return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d) || unit >= 0x1c;
  if (unit < 0x1680) return unit === 0x85 || unit === 0xa0;
  return (
    unit === 0x1680 ||
    (unit >= 0x2000 && unit <= 0x200a) ||
    unit === 0x2028 ||
    unit === 0x2029 ||
    unit === 0x202f ||
    unit === 0x205f ||
    unit === 0x3000
  );
}

/** Capital letters newer than Unicode 14.0, which CPython 3.11 does not change. */
const youngerCapitals =
  /([\u1C89\uA7CB\uA7CC\uA7CE\uA7D2\uA7D4\uA7DA\uA7DC]|\uD803[\uDD50-\uDD65]|\uD81B[\uDEA0-\uDEB8])/;

/**
 * Python's `str.lower()`, with Unicode 14.0 as in CPython 3.11, not this machine's version. A capital sigma at a
 * word's end becomes a final one; `İ` becomes two code points.
 */
export function pythonLower(text: string): string {
  if (!youngerCapitals.test(text)) return text.toLowerCase();
  return text
    .split(youngerCapitals)
    .map((part, index) => (index % 2 === 0 ? part.toLowerCase() : part))
    .join("");
}

/** White space as Rust defines it (Unicode's `White_Space`), as a character class. */
export const rustSpace =
  "[\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";

const isSpace = new RegExp(rustSpace);

/** The text without white space at its start. */
export function rustTrimStart(text: string): string {
  let start = 0;
  while (start < text.length && isSpace.test(text[start] as string)) start += 1;
  return text.slice(start);
}

/** The text without white space at its end. */
export function rustTrimEnd(text: string): string {
  let end = text.length;
  while (end > 0 && isSpace.test(text[end - 1] as string)) end -= 1;
  return text.slice(0, end);
}

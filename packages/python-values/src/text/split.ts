import { isPythonSpace } from "./white-space.ts";

/** Python's `str.split()` without arguments: the words between runs of white space. */
export function pythonSplit(text: string): string[] {
  const words: string[] = [];
  let start = 0;
  for (let index = 0; index <= text.length; index++) {
    if (index < text.length && !isPythonSpace(text.charCodeAt(index))) continue;
    if (index > start) words.push(text.slice(start, index));
    start = index + 1;
  }
  return words;
}

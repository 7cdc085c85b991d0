import { isPythonSpace } from "../../../../python-values/src/index.ts";

/** The first place at or after `start` with a character that is not one of `characters`. */
export function skipCharacters(text: string, start: number, characters: string): number {
  let index = start;
  while (index < text.length && characters.includes(text[index] ?? "")) index += 1;
  return index;
}

/** The first place at or after `start` with a character that is not white space for `str.isspace()`. */
export function skipPythonSpace(text: string, start: number): number {
  let index = start;
  while (index < text.length && isPythonSpace(text.charCodeAt(index))) index += 1;
  return index;
}

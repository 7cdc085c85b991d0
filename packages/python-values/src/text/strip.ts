import { isPythonSpace } from "./white-space.ts";

/** Python's `str.strip()`; `chars` is the set of code points to remove, default white space. */
export function pythonStrip(text: string, chars?: string): string {
  return pythonRstrip(pythonLstrip(text, chars), chars);
}

/** Python's `str.lstrip()`. */
export function pythonLstrip(text: string, chars?: string): string {
  if (chars !== undefined) return stripSet(text, new Set(chars), "start");
  let start = 0;
  while (start < text.length && isPythonSpace(text.charCodeAt(start))) start += 1;
  return text.slice(start);
}

/** Python's `str.rstrip()`. */
export function pythonRstrip(text: string, chars?: string): string {
  if (chars !== undefined) return stripSet(text, new Set(chars), "end");
  let end = text.length;
  while (end > 0 && isPythonSpace(text.charCodeAt(end - 1))) end -= 1;
  return text.slice(0, end);
}

function stripSet(text: string, set: ReadonlySet<string>, side: "start" | "end"): string {
  let rest = text;
  for (;;) {
    const character = side === "start" ? firstCharacter(rest) : lastCharacter(rest);
    if (character === "" || !set.has(character)) return rest;
    rest = side === "start" ? rest.slice(character.length) : rest.slice(0, -character.length);
  }
}

function firstCharacter(text: string): string {
  return /^(?:[\uD800-\uDBFF][\uDC00-\uDFFF]|[^])/.exec(text)?.[0] ?? "";
}

function lastCharacter(text: string): string {
  return /[\uD800-\uDBFF][\uDC00-\uDFFF]$/.exec(text.slice(-2))?.[0] ?? text.slice(-1);
}

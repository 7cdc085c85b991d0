/**
 * Where the bracket that opens at `start` closes, counting only brackets of its own kind outside
 * double-quoted strings; a backslash hides the next character, in a string or not. The result is the
 * place after the closing bracket, `undefined` where there is none.
 */
export function findBracketEnd(text: string, start: number): number | undefined {
  const open = text[start];
  const close = open === "{" ? "}" : "]";
  let depth = 0;
  let inString = false;
  for (let index = start; index < text.length; index++) {
    const character = text[index];
    if (character === "\\") index += 1;
    else if (character === '"') inString = !inString;
    else if (inString) continue;
    else if (character === open) depth += 1;
    else if (character === close) {
      depth -= 1;
      if (depth === 0) return index + 1;
    }
  }
  return undefined;
}

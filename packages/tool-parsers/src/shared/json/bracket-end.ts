/**
 * Finds the place after the bracket that closes the one at `start`; `undefined` if it is missing.
 * Only brackets of the same kind outside double-quoted strings count. A backslash hides the next
 * character, inside and outside strings.
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

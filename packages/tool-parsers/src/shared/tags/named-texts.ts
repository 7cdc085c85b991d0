/** The text between an opening tag with a name and a closing tag. */
interface NamedText {
  readonly name: string;
  readonly text: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Finds `<open name>text</close>`, both closed, from left to right, as the lazy Python pattern
 * `open([^>]+)>(.*?)close` with DOTALL does. A name is not empty and contains no `>`.
 */
export function findNamedTexts(text: string, open: string, close: string): NamedText[] {
  const found: NamedText[] = [];
  let start = text.indexOf(open);
  while (start !== -1) {
    const nameStart = start + open.length;
    const nameEnd = text.indexOf(">", nameStart);
    if (nameEnd === -1) break;
    if (nameEnd === nameStart) {
      start = text.indexOf(open, nameStart);
      continue;
    }
    const textEnd = text.indexOf(close, nameEnd + 1);
    if (textEnd === -1) break;
    const end = textEnd + close.length;
    const name = text.slice(nameStart, nameEnd);
    found.push({ name, text: text.slice(nameEnd + 1, textEnd), start, end });
    start = text.indexOf(open, end);
  }
  return found;
}

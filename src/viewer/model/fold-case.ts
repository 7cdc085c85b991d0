/** Returns a text in lower case, or unchanged if that would change its length. */
export function foldCase(text: string): string {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text;
}

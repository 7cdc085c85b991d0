/** The places of `marker` in the text, in order and without overlap. */
export function indexesOf(text: string, marker: string): number[] {
  const indexes: number[] = [];
  for (let at = text.indexOf(marker); at !== -1; at = text.indexOf(marker, at + marker.length)) {
    indexes.push(at);
  }
  return indexes;
}

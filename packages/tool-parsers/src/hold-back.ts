/**
 * Returns the length of the longest suffix of the text that is an incomplete marker. A stream must hold this suffix
 * back. Complete markers do not count.
 */
export function holdBackLength(text: string, markers: readonly string[]): number {
  let longest = 0;
  for (const marker of markers) {
    for (let length = Math.min(marker.length - 1, text.length); length > longest; length--) {
      if (marker.startsWith(text.slice(text.length - length))) {
        longest = length;
        break;
      }
    }
  }
  return longest;
}

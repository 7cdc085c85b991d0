/**
 * The length of the longest end of the text that may go on as one of the markers: what a stream must
 * keep back. Whole markers do not count.
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

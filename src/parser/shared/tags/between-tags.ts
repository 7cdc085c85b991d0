/**
 * What stands between each opening tag and the next closing one, as the lazy Python pattern
 * `open(.*?)close` finds it with DOTALL, but in linear time: without a further closing tag the
 * search ends.
 */
export function betweenTags(text: string, open: string, close: string): string[] {
  const found: string[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(open, position);
    if (start === -1) return found;
    const end = text.indexOf(close, start + open.length);
    if (end === -1) return found;
    found.push(text.slice(start + open.length, end));
    position = end + close.length;
  }
}

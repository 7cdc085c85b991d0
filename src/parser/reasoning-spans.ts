type Span = readonly [start: number, end: number];

const thinkTag = /<(\/?)think>/g;

/**
 * Where the text of a turn is reasoning between `<think>` and `</think>`: from an opening tag to the
 * next closing one or the end of the text, and from the start of the text to a closing tag that no
 * opening one precedes (many templates open the reasoning themselves). Tags inside `blocks` are
 * what a tool was told, not tags.
 *
 * @returns spans in order, without overlap, in UTF-16 code units, end exclusive.
 */
export function findReasoningSpans(text: string, blocks: readonly Span[]): Span[] {
  const spans: Span[] = [];
  if (!text.includes("think>")) return spans;
  let blockIndex = 0;
  let openedAt: number | undefined;
  let closedOnce = false;
  for (const { 0: tag, 1: slash, index } of text.matchAll(thinkTag)) {
    while ((blocks[blockIndex]?.[1] ?? Infinity) <= index) blockIndex += 1;
    if ((blocks[blockIndex]?.[0] ?? Infinity) <= index) continue;
    if (slash === "") {
      openedAt ??= index;
      continue;
    }
    if (openedAt !== undefined) spans.push([openedAt, index + tag.length]);
    else if (!closedOnce) spans.push([0, index + tag.length]);
    openedAt = undefined;
    closedOnce = true;
  }
  if (openedAt !== undefined) spans.push([openedAt, text.length]);
  return spans;
}

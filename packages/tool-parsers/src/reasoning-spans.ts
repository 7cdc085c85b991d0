type Span = readonly [start: number, end: number];

const thinkTag = /<(\/?)think>/g;

/**
 * Finds the parts of a turn's text that are reasoning between `<think>` and `</think>`. A part
 * reaches from an opening tag to the next closing tag or the end of the text. The text before a
 * first closing tag is reasoning too, because many templates open the reasoning themselves. Tags
 * inside `blocks` are arguments of tools and do not count.
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

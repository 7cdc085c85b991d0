/** The text between an opening and a closing tag. */
export interface TagText {
  readonly inner: string;
  /** Start of the opening tag. */
  readonly start: number;
  /** End of the closing tag, exclusive; the end of the text if the closing tag is missing. */
  readonly end: number;
  readonly closed: boolean;
}

/**
 * Finds each opening tag with the next closing tag, from left to right. The last opening tag may
 * lack a closing one: its text then reaches to the end.
 */
export function findOpened(text: string, open: string, close: string): TagText[] {
  const found: TagText[] = [];
  let start = text.indexOf(open);
  while (start !== -1) {
    const innerStart = start + open.length;
    const innerEnd = text.indexOf(close, innerStart);
    if (innerEnd === -1) {
      return [...found, { inner: text.slice(innerStart), start, end: text.length, closed: false }];
    }
    const end = innerEnd + close.length;
    found.push({ inner: text.slice(innerStart, innerEnd), start, end, closed: true });
    start = text.indexOf(open, end);
  }
  return found;
}

/**
 * Finds the pairs of tags that are closed, as the Python pattern `open(.*?)close` does with DOTALL.
 */
export function findClosed(text: string, open: string, close: string): TagText[] {
  const found = findOpened(text, open, close);
  if (found.at(-1)?.closed === false) found.pop();
  return found;
}

/** The texts between the tags that are closed. */
export function betweenTags(text: string, open: string, close: string): string[] {
  return findClosed(text, open, close).map(({ inner }) => inner);
}

/** The text without the tags that are closed and everything between them. */
export function outsideTags(text: string, open: string, close: string): string {
  let position = 0;
  const parts = findClosed(text, open, close).map(({ start, end }) => {
    const part = text.slice(position, start);
    position = end;
    return part;
  });
  return parts.join("") + text.slice(position);
}

/** The text from a match of an opening tag's pattern to the next closing tag. */
export interface HeadText extends TagText {
  readonly head: RegExpExecArray;
}

/** Finds the elements that are closed, given a global pattern for their opening tags. */
export function findByHead(text: string, pattern: RegExp, close: string): HeadText[] {
  const found: HeadText[] = [];
  const heads = new RegExp(pattern);
  for (let head = heads.exec(text); head !== null; head = heads.exec(text)) {
    const innerStart = heads.lastIndex;
    const innerEnd = text.indexOf(close, innerStart);
    if (innerEnd === -1) break;
    heads.lastIndex = innerEnd + close.length;
    const inner = text.slice(innerStart, innerEnd);
    found.push({ head, inner, start: head.index, end: heads.lastIndex, closed: true });
  }
  return found;
}

/** Divides a span among the items that start in it: the first item begins with the span. */
export function divideSpan(
  span: readonly [start: number, end: number],
  starts: readonly number[],
): (readonly [start: number, end: number])[] {
  return starts.map((start, index) => [
    index === 0 ? span[0] : start,
    starts[index + 1] ?? span[1],
  ]);
}

import { holdBackLength } from "../../hold-back.ts";

const open = "<co>";
const close = "</co: ";

/** The visible text of a text with citations, and the number of UTF-16 code units that were read for it. */
interface CitedText {
  readonly text: string;
  /** The number of UTF-16 code units that were read. */
  readonly length: number;
  /** True if the text contains a citation. */
  readonly isCited: boolean;
  /** True if the unread text begins with an unclosed citation, and `text` already has its text. */
  readonly isOpen: boolean;
}

/**
 * Removes citation marks, `<co>…</co: 0:[1]>`, from a text. An incomplete mark at the end is left unread. If a closing
 * mark has no opening mark, the closing mark and all text after it are left unread too.
 *
 * **Source:** cohere-ai/melody, `src/parsing/citations_filter.rs`; PyPI's `cohere_melody` 0.15.3.
 */
export function stripCitations(text: string): CitedText {
  const shown: string[] = [];
  let position = 0;
  let isCited = false;
  const finish = (length: number, isOpen = false): CitedText => {
    return { text: shown.join(""), length, isCited, isOpen };
  };
  for (;;) {
    const opening = text.indexOf(open, position);
    if (opening === -1) {
      const held = holdBackLength(text.slice(position), [open]);
      if (held > 0) return finish(position);
      shown.push(text.slice(position));
      return finish(text.length);
    }
    const openingEnd = opening + open.length;
    const closing = findClosing(text, position);
    if (closing.end === -1) {
      shown.push(text.slice(position, opening), text.slice(openingEnd, closing.start));
      return finish(opening, true);
    }
    if (closing.start < openingEnd) return finish(position);
    shown.push(text.slice(position, opening), text.slice(openingEnd, closing.start));
    position = closing.end;
    isCited = true;
  }
}

/** Finds the next closing mark. `end` is -1 if the mark is incomplete or missing. */
function findClosing(text: string, from: number): { readonly start: number; readonly end: number } {
  const start = text.indexOf(close, from);
  if (start === -1) {
    const held = holdBackLength(text.slice(from), [close]);
    return { start: text.length - held, end: -1 };
  }
  const end = text.indexOf(">", start);
  return { start, end: end === -1 ? -1 : end + 1 };
}

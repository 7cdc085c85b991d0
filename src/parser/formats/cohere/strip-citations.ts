import { holdBackLength } from "../../hold-back.ts";

const open = "<co>";
const close = "</co: ";

/** What is shown of a text with citations, and how much of it that accounts for. */
interface CitedText {
  readonly text: string;
  /** How many units of the text were read. */
  readonly length: number;
  /** Whether something was cited. */
  readonly isCited: boolean;
  /** Whether the rest begins with a citation that is not closed, whose text is shown already. */
  readonly isOpen: boolean;
}

/**
 * Takes the marks of citations, `<co>…</co: 0:[1]>`, out of a text. What may be the beginning of one
 * is left unread, and so is everything from a closing mark on that nothing opens.
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

/** Where the next closing mark stands; `end` is -1 where it is not whole. */
function findClosing(text: string, from: number): { readonly start: number; readonly end: number } {
  const start = text.indexOf(close, from);
  if (start === -1) {
    const held = holdBackLength(text.slice(from), [close]);
    return { start: text.length - held, end: -1 };
  }
  const end = text.indexOf(">", start);
  return { start, end: end === -1 ? -1 : end + 1 };
}

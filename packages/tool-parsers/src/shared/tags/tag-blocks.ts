import type { Block, Diagnostic } from "../../attempt.ts";
import type { ParseContext } from "../../parse-context.ts";
import { indexesOf } from "../text/indexes-of.ts";

/** The text between an opening and a closing tag. */
export interface Frame {
  /** The frame's place in the text, tags included, in UTF-16 code units, end exclusive. */
  readonly span: readonly [start: number, end: number];
  readonly inner: string;
  /** The start of `inner` in the text. */
  readonly innerStart: number;
  readonly closed: boolean;
}

/** A format with calls between an opening and a closing tag. */
export interface TagFormat {
  readonly open: string;
  readonly close: string;
  /**
   * Matches the text after an unclosed opening tag that starts a call. Any other unclosed tag is
   * only a mention.
   */
  readonly begins: RegExp;
  /** Reads the blocks of a frame, closed or not. The caller adds the problem of an unclosed frame. */
  readonly read: (frame: Frame, context: ParseContext) => readonly Block[];
}

/**
 * Finds every block of a format with tags. A block ends at the next closing tag. It is unclosed if
 * another opening tag or the end of the text comes first.
 */
export function findTagBlocks(text: string, format: TagFormat, context: ParseContext): Block[] {
  return findFrames(text, format.open, format.close).flatMap((frame) => {
    if (frame.closed) return format.read(frame, context);
    if (!format.begins.test(frame.inner)) return [markerOnly(frame.span[0], format.open)];
    const problem = unclosed(format.close);
    return format.read(frame, context).map((block) => ({ ...block, problem }));
  });
}

/** Returns the frames of a text, in order. An unclosed frame ends at the next opening tag or at the text's end. */
function findFrames(text: string, open: string, close: string): Frame[] {
  const openings = indexesOf(text, open);
  const closings = indexesOf(text, close);
  let closingIndex = 0;
  let position = 0;
  return openings.flatMap((start, index) => {
    if (start < position) return [];
    const innerStart = start + open.length;
    while ((closings[closingIndex] ?? Infinity) < innerStart) closingIndex += 1;
    const nextOpening = openings[index + 1] ?? text.length;
    const closing = closings[closingIndex];
    const closed = closing !== undefined && closing <= nextOpening && closing < text.length;
    const innerEnd = closed ? closing : nextOpening;
    position = closed ? innerEnd + close.length : innerEnd;
    const inner = text.slice(innerStart, innerEnd);
    return [{ span: [start, position], inner, innerStart, closed }];
  });
}

/** The block of an opening tag without a call after it. */
export function markerOnly(start: number, open: string): Block {
  return {
    span: [start, start + open.length],
    problem: {
      status: "marker-only",
      detail: `${open} is mentioned, but no call follows it`,
    },
  };
}

/** The problem of a block without its closing tag. */
export function unclosed(close: string): Diagnostic {
  return { status: "unclosed-block", detail: `the call is not closed, expected ${close}` };
}

/** The problem of a block with JSON that cannot be read. */
export function invalidJson(detail: string): Diagnostic {
  return { status: "invalid-json", detail };
}

/** The problem of a block that does not have the format's structure. */
export function malformed(detail: string): Diagnostic {
  return { status: "malformed-structure", detail };
}

import {
  couldStartHeader,
  holdsMuseCall,
  muse,
  readRecipient,
  spaceLength,
} from "../muse-channels.ts";
import { defineReasoning } from "./define-reasoning.ts";
import type { ReasoningResult } from "./reasoning-parser.ts";

/**
 * Muse: the channel to itself is reasoning. Channels to tools keep their framing for the tool-call
 * parser; where one follows and the turn holds a call, the channel to the user does too.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py`
 * (`MuseGlimmerDetector`).
 */
export const museReasoning = defineReasoning({
  name: "muse",
  markers: [` to=self${muse.message}`],
  split: (text, { toolCallParserActive }) => {
    const result = splitChannels(text, false);
    const keepsFraming = toolCallParserActive && holdsMuseCall(result.normalText);
    return keepsFraming ? splitChannels(text, true) : result;
  },
});

function splitChannels(text: string, keepsFraming: boolean): ReasoningResult {
  const reasoning: string[] = [];
  const normal: string[] = [];
  let position = 0;
  let sawReasoning = false;
  while (position < text.length) {
    const header = readHeader(text, position);
    normal.push(header.skipped);
    if (header.type === "unfinished") {
      normal.push(text.slice(header.end));
      break;
    }
    const body = readBody(text, header.end);
    if (header.recipient === "self") {
      if (sawReasoning) reasoning.push("\n");
      sawReasoning = true;
      reasoning.push(body.text);
    } else {
      const isFramed = header.recipient !== "user" || keepsFraming;
      normal.push(isFramed ? header.text : "", body.text, isFramed ? body.terminator : "");
    }
    position = body.end;
  }
  return { reasoning: reasoning.join(""), normalText: normal.join("") };
}

interface Header {
  /** `unfinished` where the text ends before the message marker. */
  readonly type: "channel" | "unfinished";
  /** White space before the header, which is normal text. */
  readonly skipped: string;
  /** The header with its marker; empty where text stands outside any channel. */
  readonly text: string;
  readonly recipient: string | undefined;
  readonly end: number;
}

function readHeader(text: string, position: number): Header {
  const opensBare = position === 0 && couldStartHeader(text);
  const space = opensBare ? 0 : spaceLength(text.slice(position));
  const start = position + space;
  const head = text.slice(start, start + muse.start.length);
  if (!opensBare && !muse.start.startsWith(head)) {
    return { type: "channel", skipped: "", text: "", recipient: undefined, end: position };
  }
  const skipped = text.slice(position, start);
  // The engine never releases a turn's end that may begin a header.
  const isCut = !opensBare && head.length < muse.start.length;
  const marker = isCut ? -1 : text.indexOf(muse.message, start);
  if (marker === -1) {
    const end = isCut ? text.length : start;
    return { type: "unfinished", skipped, text: "", recipient: undefined, end };
  }
  const end = marker + muse.message.length;
  const header = text.slice(start, marker);
  const recipient = readRecipient(header) ?? "user";
  return { type: "channel", skipped, text: text.slice(start, end), recipient, end };
}

function readBody(text: string, start: number): { text: string; terminator: string; end: number } {
  const pattern = /<\|eo[mt]\|>/g;
  pattern.lastIndex = start;
  const match = pattern.exec(text);
  if (match === null) return { text: text.slice(start), terminator: "", end: text.length };
  const [terminator] = match;
  const end = match.index + terminator.length;
  return { text: text.slice(start, match.index), terminator, end };
}

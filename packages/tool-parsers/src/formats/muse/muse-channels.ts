import {
  isPythonSpace,
  parsePythonJson,
  type PyDict,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { findAttributeTag } from "../../shared/tags/attribute-tags.ts";
import { skipPythonSpace } from "../../shared/text/skip-characters.ts";

/** The markers of Muse's recipient channels, and of the calls in them. */
export const muse = {
  start: "<|start|>",
  message: "<|message|>",
  callsOpen: "<atem:function_calls>",
  invokeOpen: "<atem:invoke",
  invokeClose: "</atem:invoke>",
} as const;

/** A part of a turn. The texts of all parts, in order, make up the turn. */
type MusePiece =
  /** A piece of white space before a header. */
  | { readonly type: "space"; readonly text: string }
  | {
      readonly type: "channel";
      /** The recipient of the channel. Absent for text outside any channel. */
      readonly recipient?: string;
      /** The header, from its start to the end of its message marker. */
      readonly header: string;
      readonly body: string;
      readonly bodyStart: number;
      /** The marker that ends the channel: `<|eom|>` or `<|eot|>`. Empty if the turn was cut off. */
      readonly terminator: string;
    }
  /** A header without a message marker. */
  | { readonly type: "unfinished"; readonly text: string }
  /** An incomplete `<|start|>` at the end of the turn. */
  | { readonly type: "cut"; readonly text: string };

/**
 * Splits a turn into its channels. The first header may lack `<|start|>assistant`.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/muse_glimmer_format.py` and
 * `muse_glimmer_detector.py`.
 */
export function splitMuseTurn(text: string): MusePiece[] {
  const pieces: MusePiece[] = [];
  let position = 0;
  while (position < text.length) {
    const opensBare = position === 0 && couldStartHeader(text);
    const start = opensBare ? 0 : skipPythonSpace(text, position);
    const head = text.slice(start, start + muse.start.length);
    const isUnframed = !opensBare && !muse.start.startsWith(head);
    if (!isUnframed && start > position) {
      pieces.push({ type: "space", text: text.slice(position, start) });
    }
    if (!opensBare && !isUnframed && head.length < muse.start.length) {
      return [...pieces, { type: "cut", text: text.slice(start) }];
    }
    const marker = isUnframed ? position : text.indexOf(muse.message, start);
    if (marker === -1) return [...pieces, { type: "unfinished", text: text.slice(start) }];
    const headerStart = isUnframed ? position : start;
    const bodyStart = isUnframed ? position : marker + muse.message.length;
    const { bodyEnd, end } = findBodyEnd(text, bodyStart);
    pieces.push({
      type: "channel",
      ...(!isUnframed && { recipient: readRecipient(text.slice(start, marker)) }),
      header: text.slice(headerStart, bodyStart),
      body: text.slice(bodyStart, bodyEnd),
      bodyStart,
      terminator: text.slice(bodyEnd, end),
    });
    position = end;
  }
  return pieces;
}

function findBodyEnd(text: string, start: number): { bodyEnd: number; end: number } {
  const pattern = /<\|eo[mt]\|>/g;
  pattern.lastIndex = start;
  const match = pattern.exec(text);
  if (match === null) return { bodyEnd: text.length, end: text.length };
  return { bodyEnd: match.index, end: match.index + match[0].length };
}

/** True if the text contains any part of a call. */
export function holdsMuseCall(text: string): boolean {
  return text.includes(muse.invokeOpen) || text.includes(muse.callsOpen);
}

/** The recipient that a header names; `user` if it names none. */
function readRecipient(header: string): string {
  let place = header.indexOf("to=");
  while (place !== -1) {
    const start = place + 3;
    let end = start;
    while (end < header.length && header[end] !== "<" && !isPythonSpace(header.charCodeAt(end))) {
      end += 1;
    }
    if (end > start) return header.slice(start, end);
    place = header.indexOf("to=", start);
  }
  return "user";
}

/**
 * True if a turn begins with a header without `<|start|>`: `to=`, a recipient, the message marker.
 */
function couldStartHeader(text: string): boolean {
  const stripped = text.slice(skipPythonSpace(text, 0));
  if (stripped === "") return true;
  if (!stripped.startsWith("to=") && !"to=".startsWith(stripped.slice(0, 3))) return false;
  if (stripped.includes(muse.message)) return true;
  const angle = stripped.indexOf("<", 3);
  const recipientEnd = angle === -1 ? stripped.length : angle;
  for (let index = 3; index < recipientEnd; index++) {
    if (isPythonSpace(stripped.charCodeAt(index))) return false;
  }
  return angle === -1 || muse.message.startsWith(stripped.slice(angle));
}

const parameterClose = "</atem:parameter>";

/**
 * The arguments of a call: JSON, or text if the value is no JSON or its name is one of `strings`.
 */
export function readMuseArguments(body: string, strings: ReadonlySet<string> = new Set()): PyDict {
  const values = new Map<string, PyValue>();
  const parameter = { name: "atem:parameter", attribute: "name" };
  let tag = findAttributeTag(body, parameter, 0);
  while (tag !== undefined) {
    const end = body.indexOf(parameterClose, tag.end);
    if (end === -1) break;
    const raw = body.slice(tag.end, end);
    const json = strings.has(tag.value)
      ? undefined
      : catchPython(() => parsePythonJson(raw), "ValueError");
    values.set(tag.value, json === undefined ? raw : json);
    tag = findAttributeTag(body, parameter, end + parameterClose.length);
  }
  return values;
}

import { muse as markers } from "./muse-channels.ts";

/** A message of a turn. */
export interface MuseMessage {
  /** The recipient in the message's header, or `undefined` if the header names none. */
  readonly recipient: string | undefined;
  readonly body: string;
}

/**
 * Finds the messages of a turn. A message extends from its header to its end marker, or to the start of the next
 * header.
 *
 * **Source:** vllm-project/vllm 0.33, `_iter_messages()` of `vllm/tool_parsers/muse_tool_parser.py`.
 */
export function* iterateMuseMessages(text: string): Iterable<MuseMessage> {
  const ends = /<\|eo[mt]\|>/g;
  let end: { readonly start: number; readonly end: number } | undefined = { start: -1, end: -1 };
  let header = findHeader(text, 0);
  while (header !== undefined) {
    if (end !== undefined && end.start < header.end) {
      ends.lastIndex = header.end;
      const match = ends.exec(text);
      end = match === null ? undefined : { start: match.index, end: ends.lastIndex };
    }
    const next = findHeader(text, header.end);
    const ownEnd = end?.start ?? text.length;
    const isCut = next !== undefined && next.start < ownEnd;
    const [body = ""] = text.slice(header.end, isCut ? next.start : ownEnd).split(markers.start, 1);
    yield { recipient: header.recipient, body };
    if (isCut) header = next;
    else header = end === undefined ? undefined : findHeader(text, end.end);
  }
}

interface MuseHeader {
  readonly start: number;
  readonly end: number;
  readonly recipient: string | undefined;
}

const role = "assistant";

/**
 * Finds the first header from a place on: `<|start|>assistant`, white space, `to=` and a recipient,
 * all of them optional, and the message marker.
 */
function findHeader(text: string, from: number): MuseHeader | undefined {
  const marker = text.indexOf(markers.message, from);
  if (marker === -1) return undefined;
  const end = marker + markers.message.length;
  let nameStart = marker;
  while (nameStart > from && /[\w.-]/.test(text[nameStart - 1] as string)) nameStart -= 1;
  const isNamed =
    nameStart < marker && nameStart - 3 >= from && text.startsWith("to=", nameStart - 3);
  const recipient = isNamed ? text.slice(nameStart, marker) : undefined;
  const headStart = isNamed ? nameStart - 3 : marker;
  let spaceStart = headStart;
  while (spaceStart > from && isBlank(text[spaceStart - 1] as string)) spaceStart -= 1;
  return { start: findRoleStart(text, spaceStart, from) ?? spaceStart, end, recipient };
}

/** The start of a `<|start|>assistant` that ends at a place. */
function findRoleStart(text: string, end: number, from: number): number | undefined {
  if (!text.endsWith(role, end)) return undefined;
  let start = end - role.length;
  while (start > from && /\p{White_Space}/u.test(text[start - 1] as string)) start -= 1;
  start -= markers.start.length;
  return start >= from && text.startsWith(markers.start, start) ? start : undefined;
}

/** True for white space other than a line break. */
function isBlank(character: string): boolean {
  return character !== "\n" && /\p{White_Space}/u.test(character);
}

import { safeCutIndex } from "../secrets/redactor.ts";
import { isPyDict, isPyList, type PyValue } from "../../packages/python-values/src/value.ts";

/** Maximum size of a brief value: its text characters, plus one for each value. */
const maxBriefLength = 2000;

/** The text that replaces the parts that a brief value leaves out. */
const ellipsis = "…";

/**
 * Shortens a value for a report: a long value becomes its first part and `…`. Reports repeat values that a policy
 * wrote, which may have any length.
 */
export function briefValue(value: PyValue): PyValue {
  return shorten(value, { left: maxBriefLength });
}

/** Shortens a text for a report; see `briefValue()`. */
export function briefText(text: string): string {
  return shortenText(text, { left: maxBriefLength });
}

function shorten(value: PyValue, room: { left: number }): PyValue {
  if (typeof value === "string") return shortenText(value, room);
  room.left -= 1;
  if (isPyList(value)) {
    const items: PyValue[] = [];
    for (const item of value) {
      if (room.left <= 0) return [...items, ellipsis];
      items.push(shorten(item, room));
    }
    return items;
  }
  if (isPyDict(value)) {
    const members = new Map<string, PyValue>();
    for (const [key, member] of value) {
      if (room.left <= 0) return members.set(ellipsis, ellipsis);
      members.set(shortenText(key, room), shorten(member, room));
    }
    return members;
  }
  return value;
}

function shortenText(text: string, room: { left: number }): string {
  const length = Math.max(room.left, 0);
  room.left -= text.length + 1;
  if (text.length <= length) return text;
  return text.slice(0, safeCutIndex(text, length)) + ellipsis;
}

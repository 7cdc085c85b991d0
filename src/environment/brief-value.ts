import { wholeSecretsEnd } from "../secrets/redactor.ts";
import { isPyDict, isPyList, type PyValue } from "../python/value.ts";

/** What a brief value keeps: characters of its texts, and values, one character each. */
const maxBriefLength = 2000;

/** What stands where a brief value leaves something out. */
const ellipsis = "…";

/**
 * A value as a report shows it: as it is where it is short, else its beginning, with `…` for what
 * follows. What a policy writes may have any length, and a report repeats it.
 */
export function briefValue(value: PyValue): PyValue {
  return shorten(value, { left: maxBriefLength });
}

/** A text as a report shows it; see `briefValue()`. */
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
  // No half of a pair of surrogates is left behind.
  const end = wholeSecretsEnd(text, length);
  return text.slice(0, /[\ud800-\udbff]/.test(text.charAt(end - 1)) ? end - 1 : end) + ellipsis;
}

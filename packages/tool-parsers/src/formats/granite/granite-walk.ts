import type { EngineWalk } from "../../vllm/parser-engine.ts";
import { skipCharacters } from "../../shared/text/skip-characters.ts";

/** The markers before a list of calls, in versions 3.0 and 3.1. */
export const graniteMarkers = ["<|tool_call|>", "<tool_call>"] as const;
const markerPattern = /<\|tool_call\|>|<tool_call>/g;

/**
 * Walks through a text in which a JSON list of calls follows each marker. Every object of the list is a call, closed or
 * not. Anything else in the list ends the list, and the text up to the next marker is normal text.
 */
export function walkGranite(text: string): EngineWalk {
  const found: EngineWalk = { before: "", after: "", reasoning: "", slots: [] };
  const addText = (part: string): void => {
    if (found.slots.length === 0) found.before += part;
    else found.after += part;
  };
  const pattern = new RegExp(markerPattern);
  let position = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    addText(text.slice(position, match.index));
    const { bodies, end, isClosed } = readList(text, pattern.lastIndex);
    found.slots.push(...bodies.map((body) => ({ name: "", body })));
    position = end;
    // A marker in place of the list or of a call is text, like anything else there.
    const next = isClosed
      ? undefined
      : graniteMarkers.find((literal) => text.startsWith(literal, end));
    pattern.lastIndex = end + (next?.length ?? 0);
  }
  addText(text.slice(position));
  return found;
}

/** Reads the objects of a list. Also finds the end of the list, or the first part of it that is not an object. */
function readList(
  text: string,
  start: number,
): { readonly bodies: string[]; readonly end: number; readonly isClosed: boolean } {
  const bodies: string[] = [];
  let index = skipCharacters(text, start, " \t\r\n");
  if (text[index] !== "[") return { bodies, end: index, isClosed: false };
  for (;;) {
    index = skipCharacters(text, index + (bodies.length === 0 ? 1 : 0), " \t\r\n,");
    if (text[index] !== "{") break;
    const end = findObjectEnd(text, index, "[{", "}]");
    bodies.push(text.slice(index, end));
    index = end;
  }
  const isClosed = text[index] === "]";
  return { bodies, end: index + (isClosed ? 1 : 0), isClosed };
}

/**
 * Finds the end of the object that opens at `start`, given the brackets that nest. For an object that is cut off, this
 * is the end of the text.
 */
export function findObjectEnd(
  text: string,
  start: number,
  opening: string,
  closing: string,
): number {
  let depth = 0;
  let isInString = false;
  for (let index = start; index < text.length; index += 1) {
    const character = text[index] ?? "";
    if (isInString) {
      if (character === "\\") index += 1;
      else isInString = character !== '"';
    } else if (character === '"') isInString = true;
    else if (opening.includes(character)) depth += 1;
    else if (closing.includes(character)) {
      depth = Math.max(depth - 1, 0);
      if (depth === 0 && character === "}") return index + 1;
    }
  }
  return text.length;
}

import { isPythonSpace } from "../../python/white-space.ts";
import { indexesOf } from "../indexes-of.ts";

const keyOpen = "<arg_key>";
const keyClose = "</arg_key>";
const valueOpen = "<arg_value>";
const valueClose = "</arg_value>";

/**
 * The keys and values of `<arg_key>…</arg_key> <arg_value>…</arg_value>`, as the engine's lazy pattern
 * finds them: a key reaches to the first `</arg_key>` that a value follows. White space between the
 * two may be spelled `\n`.
 */
export function findArgPairs(text: string): [key: string, value: string][] {
  const joints = findJoints(text);
  const pairs: [string, string][] = [];
  let jointIndex = 0;
  let position = 0;
  for (;;) {
    const start = text.indexOf(keyOpen, position);
    if (start === -1) return pairs;
    const keyStart = start + keyOpen.length;
    while ((joints[jointIndex]?.keyEnd ?? Infinity) < keyStart) jointIndex += 1;
    const joint = joints[jointIndex];
    if (joint === undefined) return pairs;
    const valueEnd = text.indexOf(valueClose, joint.valueStart);
    if (valueEnd === -1) return pairs;
    pairs.push([text.slice(keyStart, joint.keyEnd), text.slice(joint.valueStart, valueEnd)]);
    position = valueEnd + valueClose.length;
  }
}

/** Where a key ends and its value begins. */
function findJoints(text: string): { keyEnd: number; valueStart: number }[] {
  return indexesOf(text, keyClose).flatMap((keyEnd) => {
    const gapEnd = skipGap(text, keyEnd + keyClose.length);
    if (!text.startsWith(valueOpen, gapEnd)) return [];
    return [{ keyEnd, valueStart: gapEnd + valueOpen.length }];
  });
}

function skipGap(text: string, start: number): number {
  let index = start;
  for (;;) {
    if (text.startsWith("\\n", index)) index += 2;
    else if (index < text.length && isPythonSpace(text.charCodeAt(index))) index += 1;
    else return index;
  }
}

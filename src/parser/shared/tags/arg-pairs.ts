import { isPythonSpace } from "../../../python/text/white-space.ts";
import { indexesOf } from "../text/indexes-of.ts";

/** How a format spells its pairs of keys and values. */
interface ArgPairFormat {
  readonly keyOpen?: string;
  readonly keyClose?: string;
  readonly valueOpen?: string;
  readonly valueClose?: string;
  /** Whether `\n`, spelled out, counts as white space between key and value. Default false. */
  readonly spelledBreaks?: boolean;
  /** Whether white space is Unicode's, without the separators U+001C to U+001F. Default false. */
  readonly unicodeSpace?: boolean;
  /** Whether the value must follow its key at once. Default false. */
  readonly noGap?: boolean;
  /** Whether a key may hold `<`, and so reach over a closing tag that no value follows. Default true. */
  readonly keyHoldsTags?: boolean;
}

/**
 * The keys and values of `<arg_key>…</arg_key> <arg_value>…</arg_value>`, as the engine's lazy pattern
 * finds them: a key reaches to the first `</arg_key>` that a value follows.
 */
export function findArgPairs(text: string, format: ArgPairFormat = {}): [string, string][] {
  return splitArgPairs(text, format).pairs;
}

/** The keys and values as `findArgPairs()` gives them, and the text around them. */
export function splitArgPairs(
  text: string,
  format: ArgPairFormat = {},
): { readonly pairs: [string, string][]; readonly rest: string } {
  const keyOpen = format.keyOpen ?? "<arg_key>";
  const valueClose = format.valueClose ?? "</arg_value>";
  const joints = findJoints(text, format);
  const pairs: [string, string][] = [];
  const rest: string[] = [];
  let position = 0;
  let jointIndex = 0;
  let start = text.indexOf(keyOpen);
  while (start !== -1) {
    const keyStart = start + keyOpen.length;
    while ((joints[jointIndex]?.keyEnd ?? Infinity) < keyStart) jointIndex += 1;
    const joint = joints[jointIndex];
    if (joint === undefined) break;
    const key = text.slice(keyStart, joint.keyEnd);
    if (format.keyHoldsTags === false && key.includes("<")) {
      start = text.indexOf(keyOpen, keyStart);
      continue;
    }
    const valueEnd = text.indexOf(valueClose, joint.valueStart);
    if (valueEnd === -1) break;
    pairs.push([key, text.slice(joint.valueStart, valueEnd)]);
    rest.push(text.slice(position, start));
    position = valueEnd + valueClose.length;
    start = text.indexOf(keyOpen, position);
  }
  return { pairs, rest: rest.join("") + text.slice(position) };
}

/** Where a key ends and its value begins. */
function findJoints(text: string, format: ArgPairFormat): { keyEnd: number; valueStart: number }[] {
  const keyClose = format.keyClose ?? "</arg_key>";
  const valueOpen = format.valueOpen ?? "<arg_value>";
  return indexesOf(text, keyClose).flatMap((keyEnd) => {
    const gapEnd = skipGap(text, keyEnd + keyClose.length, format);
    if (!text.startsWith(valueOpen, gapEnd)) return [];
    return [{ keyEnd, valueStart: gapEnd + valueOpen.length }];
  });
}

function skipGap(text: string, start: number, format: ArgPairFormat): number {
  let index = start;
  if (format.noGap === true) return index;
  for (;;) {
    if (format.spelledBreaks === true && text.startsWith("\\n", index)) index += 2;
    else if (index < text.length && isSpace(text.charCodeAt(index), format)) index += 1;
    else return index;
  }
}

function isSpace(unit: number, { unicodeSpace }: ArgPairFormat): boolean {
  return isPythonSpace(unit) && !(unicodeSpace === true && unit >= 0x1c && unit <= 0x1f);
}

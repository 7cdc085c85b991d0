import { isPythonSpace } from "../../../../python-values/src/index.ts";
import { indexesOf } from "../text/indexes-of.ts";

/** The tags around keys and values, and the rules for what may stand between them. */
export interface ArgPairFormat {
  /** Default `<arg_key>`. */
  readonly keyOpen?: string;
  readonly keyClose?: string;
  /** Default `<arg_value>`. */
  readonly valueOpen?: string;
  readonly valueClose?: string;
  /** The opening tag of a type that may stand between key and value. Default: none. */
  readonly typeOpen?: string;
  readonly typeClose?: string;
  /**
   * True if a backslash followed by `n` counts as white space between key and value. Default false.
   */
  readonly spelledBreaks?: boolean;
  /** True if white space excludes the separators U+001C to U+001F. Default false. */
  readonly unicodeSpace?: boolean;
  /** True if no text may stand between key and value. Default false. */
  readonly noGap?: boolean;
  /** True if a key may contain `<`. It can then extend past a closing tag that no value follows. Default true. */
  readonly keyHoldsTags?: boolean;
}

/** An argument as it is written. */
interface WrittenArgument {
  readonly key: string;
  readonly type: string | undefined;
  readonly value: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Finds `<arg_key>…</arg_key> <arg_value>…</arg_value>` as the engines' lazy pattern does: a key
 * reaches to the first `</arg_key>` that a value follows.
 */
export function findArguments(text: string, format: ArgPairFormat = {}): WrittenArgument[] {
  const { keyOpen = "<arg_key>", valueClose = "</arg_value>", keyHoldsTags = true } = format;
  const joints = findJoints(text, format);
  const found: WrittenArgument[] = [];
  let jointIndex = 0;
  let start = text.indexOf(keyOpen);
  while (start !== -1) {
    const keyStart = start + keyOpen.length;
    while ((joints[jointIndex]?.keyEnd ?? Infinity) < keyStart) jointIndex += 1;
    const joint = joints[jointIndex];
    if (joint === undefined) break;
    const key = text.slice(keyStart, joint.keyEnd);
    if (!keyHoldsTags && key.includes("<")) {
      start = text.indexOf(keyOpen, keyStart);
      continue;
    }
    const valueEnd = text.indexOf(valueClose, joint.valueStart);
    if (valueEnd === -1) break;
    const end = valueEnd + valueClose.length;
    const value = text.slice(joint.valueStart, valueEnd);
    found.push({ key, type: joint.type, value, start, end });
    start = text.indexOf(keyOpen, end);
  }
  return found;
}

/** The keys and values that `findArguments()` finds. */
export function findArgPairs(text: string, format: ArgPairFormat = {}): [string, string][] {
  return findArguments(text, format).map(({ key, value }) => [key, value]);
}

/** The keys and values that `findArguments()` finds, and the text around them. */
export function splitArgPairs(
  text: string,
  format: ArgPairFormat = {},
): { readonly pairs: [string, string][]; readonly rest: string } {
  let position = 0;
  const rest: string[] = [];
  const pairs = findArguments(text, format).map(({ key, value, start, end }): [string, string] => {
    rest.push(text.slice(position, start));
    position = end;
    return [key, value];
  });
  return { pairs, rest: rest.join("") + text.slice(position) };
}

/** The end of a key, and the start of its value. */
interface Joint {
  readonly keyEnd: number;
  readonly type: string | undefined;
  readonly valueStart: number;
}

function findJoints(text: string, format: ArgPairFormat): Joint[] {
  const { keyClose = "</arg_key>", valueOpen = "<arg_value>" } = format;
  const { typeOpen = "", typeClose = "" } = format;
  const typeEnds =
    typeClose === ""
      ? []
      : indexesOf(text, typeClose).filter((end) =>
          text.startsWith(valueOpen, skipGap(text, end + typeClose.length, format)),
        );
  let typeIndex = 0;
  return indexesOf(text, keyClose).flatMap((keyEnd): Joint[] => {
    const next = skipGap(text, keyEnd + keyClose.length, format);
    if (text.startsWith(valueOpen, next)) {
      return [{ keyEnd, type: undefined, valueStart: next + valueOpen.length }];
    }
    if (typeOpen === "" || !text.startsWith(typeOpen, next)) return [];
    const typeStart = next + typeOpen.length;
    while ((typeEnds[typeIndex] ?? Infinity) < typeStart) typeIndex += 1;
    const typeEnd = typeEnds[typeIndex];
    if (typeEnd === undefined) return [];
    const valueStart = skipGap(text, typeEnd + typeClose.length, format) + valueOpen.length;
    return [{ keyEnd, type: text.slice(typeStart, typeEnd), valueStart }];
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

import { templateSyntaxError } from "./token.ts";

const escapePattern =
  /\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([^]))/gu;

const singleEscapes: ReadonlyMap<string, string> = new Map([
  ["\n", ""],
  ["\\", "\\"],
  ["'", "'"],
  ['"', '"'],
  ["a", "\x07"],
  ["b", "\b"],
  ["f", "\f"],
  ["n", "\n"],
  ["r", "\r"],
  ["t", "\t"],
  ["v", "\v"],
]);

/**
 * Returns the value of a quoted string literal, with Python's escapes; unknown escapes stay unchanged.
 *
 * @throws UsageError for an incomplete escape, or one by a character's name.
 */
export function unescapePythonString(literal: string, line: number): string {
  const body = literal.slice(1, -1);
  if (!body.includes("\\")) return body;
  return body.replace(
    escapePattern,
    (whole: string, octal?: string, x?: string, u?: string, wide?: string, single?: string) => {
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8));
      const hex = x ?? u ?? wide;
      if (hex !== undefined) return characterOf(Number.parseInt(hex, 16), line);
      if (single === "x" || single === "u" || single === "U" || single === "N") {
        throw templateSyntaxError(line, `cannot read the escape \\${single} in ${literal}`);
      }
      return singleEscapes.get(single as string) ?? whole;
    },
  );
}

function characterOf(codePoint: number, line: number): string {
  if (codePoint > 0x10ffff) throw templateSyntaxError(line, "illegal Unicode character");
  return String.fromCodePoint(codePoint);
}

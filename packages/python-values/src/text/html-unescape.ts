import { decodeHTML } from "entities/decode";

const referencePattern = /&(?:#([0-9]+);?|#[xX]([0-9a-fA-F]+);?|([^\t\n\f <&#;]{1,32};?))/gu;

/** The Windows-1252 characters for the control characters U+0080 to U+009F; unassigned ones stay. */
const windowsCharacters = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ";

/**
 * Python's `html.unescape()`: named and numeric character references of HTML become characters; for an unknown
 * name, the longest known prefix is used.
 *
 * **Source:** CPython 3.11, `Lib/html/__init__.py`.
 */
export function unescapeHtml(text: string): string {
  if (!text.includes("&")) return text;
  return text.replace(
    referencePattern,
    (whole: string, decimal?: string, hex?: string, name?: string) => {
      if (name !== undefined) return decodeHTML(whole);
      const codePoint =
        decimal === undefined ? Number.parseInt(hex ?? "", 16) : Number.parseInt(decimal, 10);
      return replaceCodePoint(codePoint);
    },
  );
}

function replaceCodePoint(codePoint: number): string {
  if (codePoint === 0 || codePoint > 0x10ffff) return "\uFFFD";
  if (codePoint >= 0xd800 && codePoint <= 0xdfff) return "\uFFFD";
  if (codePoint === 0x0d) return "\r";
  if (codePoint >= 0x80 && codePoint <= 0x9f) return windowsCharacters[codePoint - 0x80] ?? "";
  return isForbidden(codePoint) ? "" : String.fromCodePoint(codePoint);
}

/** Control characters and non-characters, which HTML does not allow. */
function isForbidden(codePoint: number): boolean {
  return (
    (codePoint >= 0x1 && codePoint <= 0x8) ||
    (codePoint >= 0xb && codePoint <= 0x1f && codePoint !== 0xc) ||
    codePoint === 0x7f ||
    (codePoint >= 0xfdd0 && codePoint <= 0xfdef) ||
    (codePoint & 0xfffe) === 0xfffe
  );
}

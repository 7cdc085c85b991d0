/**
 * Characters that control display or are invisible: control characters except line feed and tab,
 * marks for direction and joining, tags, lone surrogates, and the byte-order mark. Parts of an
 * emoji stay.
 */
const unseen = new RegExp(
  [
    "[\\u0000-\\u0008\\u000B-\\u001F\\u007F-\\u009F\\u00AD\\u061C\\u115F\\u1160\\u17B4\\u17B5]",
    "[\\u180B-\\u180F\\u200B\\u200C\\u200E\\u200F\\u2028-\\u202E\\u2060-\\u206F\\u3164]",
    "[\\uFEFF\\uFFA0\\uFFF9-\\uFFFB]",
    "[\\uFE00-\\uFE0E]",
    "(?<!\\p{Emoji})\\uFE0F",
    "(?<!\\p{Emoji}\\uFE0F?)\\u200D",
    "[\\u{E0000}-\\u{E0FFF}]",
    "\\p{Surrogate}",
  ].join("|"),
  "gu",
);

/**
 * Makes untrusted text safe to show: replaces characters that steer the display or hide others by
 * visible signs.
 */
export function visibleText(text: string): string {
  return isPlain(text) ? text : text.replaceAll(unseen, spell);
}

/** Returns a token's text on one line: like `visibleText()`, with signs for line ends and tabs. */
export function tokenText(text: string): string {
  return isPlain(text) ? text : visibleText(text).replaceAll("\n", "↵").replaceAll("\t", "⇥");
}

/** True if a text has only printable ASCII. Most tokens do, so this check saves time. */
function isPlain(text: string): boolean {
  return /^[ -~]*$/.test(text);
}

function spell(character: string): string {
  const point = character.codePointAt(0)!;
  if (point < 0x20) return String.fromCodePoint(0x24_00 + point);
  if (point === 0x7f) return "␡";
  return `⟨U+${point.toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

const wide =
  /[\u1100-\u115F\u2E80-\uA4CF\uA960-\uA97F\uAC00-\uD7A3\uF900-\uFAFF\uFE30-\uFE6F\uFF01-\uFF60\uFFE0-\uFFE6\u{1F000}-\u{1FAFF}\u{20000}-\u{3FFFD}]/u;
const combining = /\p{Mark}/u;

/** Returns the approximate number of columns of a text in a monospaced font. Scripts differ. */
export function columnsOf(text: string): number {
  // eslint-disable-next-line no-control-regex -- the range of characters that take one column
  if (/^[\u0000-\u02FF]*$/.test(text)) return text.length;
  let columns = 0;
  for (const character of text) {
    columns += combining.test(character) ? 0 : wide.test(character) ? 2 : 1;
  }
  return columns;
}

import { formatCount } from "../text/format-count.ts";

/** Functions that mark parts of a text, for example with colours. */
export interface TextStyle {
  readonly heading: (text: string) => string;
  readonly faint: (text: string) => string;
  readonly warning: (text: string) => string;
  /** Marks text that the policy sampled. */
  readonly sampled: (text: string) => string;
}

/** The style for files and pipes: brackets around sampled text. */
export const plainStyle: TextStyle = {
  heading: (text) => text,
  faint: (text) => text,
  warning: (text) => text,
  sampled: (text) => `⟦${text}⟧`,
};

/** The style for terminals: sampled text is green. */
export const terminalStyle: TextStyle = {
  heading: (text) => escaped("1", text),
  faint: (text) => escaped("2", text),
  warning: (text) => escaped("31", text),
  sampled: (text) => escaped("32", text),
};

function escaped(codes: string, text: string): string {
  return `\u001B[${codes}m${text}\u001B[0m`;
}

/**
 * Makes untrusted text safe for a terminal: replaces control characters, except line ends and tabs,
 * by escapes.
 */
export function printable(text: string): string {
  return text.replaceAll(
    // eslint-disable-next-line no-control-regex -- they are what is looked for
    /[\u0000-\u0008\u000B-\u001F\u007F-\u009F]/g,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
}

/** Returns the text. Leaves out its middle if it is longer than `length` characters. */
export function shortened(text: string, length: number): string {
  if (text.length <= length) return text;
  const half = Math.floor(length / 2);
  const [head, tail] = [text.slice(0, half), text.slice(-half)];
  return `${head} … (${formatCount(text.length - 2 * half)} characters; --full shows them) … ${tail}`;
}

/** Indents every line of a text. */
export function indented(text: string): string {
  return text.replaceAll(/^/gm, "  ");
}

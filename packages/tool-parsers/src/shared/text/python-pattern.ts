import { pythonSpaces } from "../../../../python-values/src/index.ts";

/** Compiles a pattern in which `\s` has Python's meaning. */
export function pythonPattern(source: string, flags: string): RegExp {
  return new RegExp(spellSpace(source, pythonSpaces), flags);
}

/** Compiles a pattern in which `\s` means Unicode's white space, as in Python's `regex` package. */
export function unicodePattern(source: string, flags: string): RegExp {
  const spaceClass = pythonSpaces.replace(String.raw`\x1c-`, "");
  return new RegExp(spellSpace(source, spaceClass), flags);
}

/** Replaces `\s`, inside character classes and outside. */
function spellSpace(source: string, spaceClass: string): string {
  return source.replaceAll(/\[[^\]]*\]|\\s/g, (part) =>
    part === String.raw`\s` ? `[${spaceClass}]` : part.replaceAll(String.raw`\s`, spaceClass),
  );
}

/**
 * The earliest place where Python's `$` matches: the end, or before a line break at the end of the
 * text.
 */
export function pythonTextEnd(text: string): number {
  return text.endsWith("\n") ? text.length - 1 : text.length;
}

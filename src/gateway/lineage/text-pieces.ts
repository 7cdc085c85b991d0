/** Shorter lines say too little to recognise a text by. */
const minLineLength = 12;

/** Maximum number of characters of a text that are searched. */
const maxSearchedLength = 262_144;

/**
 * Returns the lines of a text that are long enough to recognise it by, without the spaces around
 * them. Equal lines are returned once.
 */
export function longLines(text: string): readonly string[] {
  const lines = text
    .slice(0, maxSearchedLength)
    .split("\n")
    .map((line) => line.trim())
    .filter(({ length }) => length >= minLineLength);
  return [...new Set(lines)];
}

/** A text between quotes, as JSON has it. */
const quoted = /"((?:[^"\\]|\\.)*)"/g;

/**
 * Returns the long lines of a text, and those of the JSON strings in it: clients pass texts on
 * indented, between tags, or as a member of an object.
 */
export function linesIn(text: string): readonly string[] {
  const lines = longLines(text);
  const inJson = lines
    .filter((line) => line.includes('"'))
    .flatMap((line) => [...line.matchAll(quoted)])
    .flatMap(([literal, content = ""]) => (content.length < minLineLength ? [] : unquote(literal)));
  return inJson.length === 0 ? lines : [...new Set([...lines, ...inJson.flatMap(longLines)])];
}

function unquote(literal: string): readonly string[] {
  try {
    const value: unknown = JSON.parse(literal);
    return typeof value === "string" ? [value] : [];
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    return [];
  }
}

/** A block in which an agent writes a summary beside its notes. */
const summaryBlock = /<summary>([^]*?)<\/summary>/;

/** Returns the part of a turn's text that a client passes on: the summary if it is marked, or all. */
export function passedOnText(text: string): string {
  return summaryBlock.exec(text)?.[1] ?? text;
}

/**
 * Returns the texts among a call's arguments that can start a conversation.
 *
 * @param argumentsText - JSON, or a text that is an argument itself.
 */
export function argumentTexts(argumentsText: string): readonly string[] {
  let value: unknown;
  try {
    value = JSON.parse(argumentsText);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    value = argumentsText;
  }
  const values = typeof value === "object" && value !== null ? Object.values(value) : [value];
  return values
    .flat()
    .filter((each): each is string => typeof each === "string")
    .map((text) => text.trim())
    .filter(({ length }) => length >= minLineLength);
}

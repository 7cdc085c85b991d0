import { parseJsonText } from "../../json/parse-json.ts";

/** Minimum length of a line by which a text is recognised. Shorter lines occur in many texts. */
const minLineLength = 12;

/** Called with each line of a text that is long enough to recognise the text. */
type VisitLine = (line: string) => void;

/** Calls back with the long lines of a text, without the spaces around them. */
function visitLines(text: string, visit: VisitLine): void {
  for (let start = 0; start < text.length;) {
    const end = lineEnd(text, start);
    if (end - start >= minLineLength) {
      const line = text.slice(start, end).trim();
      if (line.length >= minLineLength) visit(line);
    }
    start = end + 1;
  }
}

/** Returns the index of the next line feed, or the end of the text. */
export function lineEnd(text: string, start: number): number {
  const end = text.indexOf("\n", start);
  return end === -1 ? text.length : end;
}

/** Returns the long lines of a text, each once. */
export function longLines(text: string): readonly string[] {
  const lines = new Set<string>();
  visitLines(text, (line) => lines.add(line));
  return [...lines];
}

/**
 * Calls back with the long lines of a text, and with the long lines of the JSON strings in it. Clients pass texts on
 * indented, between tags, or as a member of an object. The time is linear.
 */
export function visitLinesIn(text: string, visit: VisitLine): void {
  visitLines(text, (line) => {
    visit(line);
    let start = line.indexOf('"');
    while (start !== -1) {
      const end = endOfLiteral(line, start + 1);
      if (end === -1) return;
      if (end - start > minLineLength) visitLiteral(line.slice(start, end + 1), visit);
      start = line.indexOf('"', end + 1);
    }
  });
}

/** Returns the index of the next quote that is not escaped, or -1. */
function endOfLiteral(line: string, start: number): number {
  for (let end = line.indexOf('"', start); end !== -1; end = line.indexOf('"', end + 1)) {
    let escapes = end;
    while (escapes > start && line[escapes - 1] === "\\") escapes -= 1;
    if ((end - escapes) % 2 === 0) return end;
  }
  return -1;
}

function visitLiteral(literal: string, visit: VisitLine): void {
  const value = literal.includes("\\") ? parseJsonText(literal) : literal.slice(1, -1);
  if (typeof value === "string") visitLines(value, visit);
}

/** A block in which an agent writes a summary beside its notes. */
const summaryBlock = /<summary>([^]*?)<\/summary>/;

/**
 * Returns the part of a turn's text that a client passes on: the part that is marked as a summary, or the complete
 * text.
 */
export function passedOnText(text: string): string {
  return summaryBlock.exec(text)?.[1] ?? text;
}

/**
 * Returns the texts among a call's arguments that can start a conversation.
 *
 * @param argumentsText - JSON, or a text that is an argument itself.
 */
export function argumentTexts(argumentsText: string): readonly string[] {
  const value = parseJsonText(argumentsText) ?? argumentsText;
  const values = typeof value === "object" && value !== null ? Object.values(value) : [value];
  return values
    .flat()
    .filter((each): each is string => typeof each === "string")
    .map((text) => text.trim())
    .filter(({ length }) => length >= minLineLength);
}

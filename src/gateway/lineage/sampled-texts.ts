import { digest } from "../tree/message-keys.ts";
import { lineEnd, longLines, passedOnText, visitLinesIn } from "./text-pieces.ts";

/** Maximum number of turns to remember for one line. */
const maxTurnsOfLine = 32;

/**
 * The lines of the texts that turns sampled. A later message passes a text on if it quotes at least half of the text's
 * lines.
 */
export class SampledTexts {
  /** For each line, the turns whose texts have it: at most the newest `maxTurnsOfLine`, oldest first. */
  readonly #turns = new Map<string, number[]>();
  /** Number of characters in the lines of each turn's text. */
  readonly #lengths = new Map<number, number>();

  /** Adds the text of a turn. Each turn has one text. */
  add(text: string, turn: number): void {
    const lines = longLines(passedOnText(text));
    if (lines.length === 0) return;
    this.#lengths.set(turn, lengthOf(lines));
    for (const line of lines) {
      const turns = this.#turns.get(line);
      if (turns === undefined) this.#turns.set(line, [turn]);
      else {
        turns.push(turn);
        if (turns.length > maxTurnsOfLine) turns.shift();
      }
    }
  }

  /** Returns the turns whose texts a message passes on, oldest first. */
  quotedIn(message: string): readonly number[] {
    if (this.#turns.size === 0) return [];
    const lines = new Set<string>();
    visitLinesIn(message, (line) => {
      if (this.#turns.has(line)) lines.add(line);
    });
    const found = new Map<number, number>();
    for (const line of lines) {
      for (const turn of this.#turns.get(line)!) {
        found.set(turn, (found.get(turn) ?? 0) + line.length);
      }
    }
    return [...found]
      .filter(([turn, length]) => length * 2 >= this.#lengths.get(turn)!)
      .map(([turn]) => turn)
      .toSorted((left, right) => left - right);
  }
}

function lengthOf(lines: readonly string[]): number {
  return lines.reduce((sum, { length }) => sum + length, 0);
}

/** A text that a turn passed to a tool. */
export interface PassedText {
  readonly turn: number;
  readonly length: number;
  readonly digest: string;
}

/** The texts that turns passed to tools. If a conversation starts with such a text, the call started it. */
export class PassedTexts {
  /** The texts by the key of their first line. Under one key, the newest text is last. */
  readonly #texts = new Map<string, PassedText[]>();

  /**
   * Adds a text that a turn passed to a tool.
   *
   * @param text - Without spaces around it.
   */
  add(text: string, turn: number): void {
    const key = keyOfLine(text.slice(0, lineEnd(text, 0)).trimEnd());
    const texts = this.#texts.get(key) ?? [];
    this.#texts.set(key, texts);
    const passed = { turn, length: text.length, digest: digest(text) };
    const known = texts.findIndex((each) => each.digest === passed.digest);
    if (known !== -1) texts.splice(known, 1);
    texts.push(passed);
    if (texts.length > maxTurnsOfLine) texts.shift();
  }

  /**
   * Returns the newest turn that passed a tool whole lines of the message, or `undefined`.
   *
   * @param counts - False for texts that are no evidence, such as short ones.
   */
  findIn(message: string, counts: (passed: PassedText) => boolean): number | undefined {
    if (this.#texts.size === 0) return undefined;
    let found: number | undefined;
    for (let start = 0; start < message.length;) {
      const end = lineEnd(message, start);
      const line = message.slice(start, end).trimEnd();
      const trimmed = line.trimStart();
      const begin = start + (line.length - trimmed.length);
      for (const passed of this.#texts.get(keyOfLine(trimmed)) ?? []) {
        if (isAt(message, begin, passed) && counts(passed))
          found = Math.max(found ?? 0, passed.turn);
      }
      start = end + 1;
    }
    return found;
  }
}

/** Returns a short key of a line. Few texts have the same key. */
function keyOfLine(line: string): string {
  return `${line.length} ${line.slice(0, 64)}`;
}

/** True if a text stands at a place of a message and ends with a line. */
function isAt(message: string, begin: number, text: PassedText): boolean {
  const end = begin + text.length;
  const isWhole = message.slice(end, lineEnd(message, end)).trim() === "";
  return isWhole && digest(message.slice(begin, end)) === text.digest;
}

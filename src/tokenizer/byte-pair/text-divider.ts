import { characterBits, type CharacterTable } from "./character-table.ts";

/** A part of a text that is encoded alone. */
export interface Stretch {
  /**
   * - `token`: the text of an added token.
   * - `settled`: text with settled characters only (see `characterBits`), which is cut here.
   * - `unsettled`: text that only the library can cut.
   */
  readonly kind: "token" | "settled" | "unsettled";
  /** The stretch, normalised if it is settled. */
  readonly text: string;
}

/**
 * Divides a text so that the ids of its stretches in order are those of the text.
 *
 * @param findsTokens - False if texts of added tokens are ordinary text.
 */
export type TextDivider = (text: string, findsTokens: boolean) => Iterable<Stretch>;

/**
 * Length in UTF-16 units from which a stretch ends at the next boundary. Short stretches keep the cost
 * of a character above U+00FF to its surroundings, because patterns take longer on such text.
 */
const enoughLength = 512;

/** Number of settled UTF-16 units after the last unsettled character that end its stretch. */
const unsettledMargin = 64;

/** The parts of a tokenizer that dividing needs. */
interface DividerParts {
  readonly characters: CharacterTable;
  /** The texts of the added tokens. */
  readonly tokens: readonly string[];
  /** True if the tokenizer normalises to NFC. The divider then normalises settled stretches. */
  readonly normalizes: boolean;
  /** True if the last pattern matches all white space. */
  readonly hasBoundaries: boolean;
}

/**
 * Creates the function that divides texts for a tokenizer with known patterns (`isWellKnown()`).
 *
 * Texts are divided at added tokens, and where a letter or number meets a space, tab or line end.
 * That is a boundary between pieces that does not depend on other text:
 *
 * - No known alternative matches white space after a letter or number (a test checks this), so no
 *   match contains the boundary. The last pattern matches all white space, so no text between two
 *   matches contains it either.
 * - Patterns do not look back. They look ahead only for white space after white space, which a
 *   letter or number ends. A run that reaches the boundary ends there as at the end of a text.
 * - No normal form combines a space, tab or line end with other characters. A letter whose normal
 *   form may end with a mark, for example U+0958, is no boundary.
 */
export function createTextDivider(parts: DividerParts): TextDivider {
  const { characters, normalizes, hasBoundaries } = parts;
  const table = characters.bits;
  const tokens = patternOf(parts.tokens);
  const boundaryBits = normalizes
    ? characterBits.word | characterBits.composing
    : characterBits.word;

  return function* divide(text, findsTokens) {
    const tokenBit = findsTokens ? characterBits.token : 0;
    let start = 0;
    /** The last boundary of a settled stretch, or its start. */
    let boundary = 0;
    /** The position of the last unsettled character of the stretch, or -1. */
    let unsettledAt = -1;
    /** All bits of the stretch so far. */
    let seen = 0;
    let before = 0;

    const stretchTo = (end: number): Stretch => {
      const part = text.slice(start, end);
      const isSettled = unsettledAt === -1;
      const changes = normalizes && isSettled && (seen & characterBits.composing) !== 0;
      start = boundary = end;
      unsettledAt = -1;
      seen = 0;
      return {
        kind: isSettled ? "settled" : "unsettled",
        text: changes ? part.normalize("NFC") : isSettled ? copyOf(part) : part,
      };
    };

    for (let at = 0; at < text.length;) {
      let bits = table[text.charCodeAt(at)] as number;
      if (bits === characterBits.word || bits === 0) {
        before = bits;
        at += 1;
        continue;
      }
      if ((bits & tokenBit) !== 0) {
        tokens.lastIndex = at;
        if (tokens.test(text)) {
          const end = tokens.lastIndex;
          if (at > start) yield stretchTo(at);
          yield { kind: "token", text: text.slice(at, end) };
          at = start = boundary = end;
          before = 0;
          continue;
        }
      }
      if (
        (bits & characterBits.space) !== 0 &&
        (before & boundaryBits) === characterBits.word &&
        hasBoundaries
      ) {
        const isOver =
          unsettledAt === -1 ? at - start >= enoughLength : at - unsettledAt > unsettledMargin;
        if (isOver) yield stretchTo(at);
        else if (unsettledAt === -1) boundary = at;
      }
      let size = 1;
      if ((bits & characterBits.pair) !== 0) {
        bits = characters.bitsOfPair(text, at);
        if ((text.codePointAt(at) as number) > 0xffff) size = 2;
      }
      if ((bits & characterBits.unsettled) !== 0) {
        if (unsettledAt === -1 && boundary > start) yield stretchTo(boundary);
        unsettledAt = at;
      }
      seen |= bits;
      before = bits;
      at += size;
    }
    if (start < text.length) yield stretchTo(text.length);
  };
}

/**
 * Returns a copy of a well-formed text. Patterns take several times as long on a slice of a text,
 * and on a text with a character above U+00FF.
 */
export function copyOf(text: string): string {
  return Buffer.from(text).toString();
}

/** Returns a pattern that matches the longest of the texts at `lastIndex`. */
function patternOf(texts: readonly string[]): RegExp {
  const longestFirst = texts.toSorted((left, right) => right.length - left.length);
  const escaped = longestFirst.map((text) => text.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"));
  return new RegExp(escaped.join("|"), "y");
}

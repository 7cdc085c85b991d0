import { PatternError } from "./pattern-node.ts";

/** Rules for comparing characters and reading classes. */
interface CharacterRules {
  readonly ignoresCase: boolean;
  /** True if `\d`, `\w` and `\s` match the characters of all languages, as in Python. */
  readonly isUnicode: boolean;
}

const unicodeClasses: Readonly<Partial<Record<string, string>>> = {
  d: String.raw`\p{Nd}`,
  D: String.raw`\P{Nd}`,
  w: String.raw`\p{Alphabetic}\p{M}\p{N}\p{Pc}`,
};

/**
 * Returns the class of a letter after a backslash (`d`, `D`, `w`, `W`, `s`, `S`), for use in brackets; `undefined`
 * for other letters.
 */
export function namedClass(letter: string, { isUnicode }: CharacterRules): string | undefined {
  if (!/^[dDwWsS]$/.test(letter)) return undefined;
  return (isUnicode ? unicodeClasses[letter] : undefined) ?? `\\${letter}`;
}

/** Returns one character, escaped for use in brackets. */
export function classCharacter(codePoint: number): string {
  return `\\u{${codePoint.toString(16)}}`;
}

/**
 * Compiles a bracket class to a test. The test applies JavaScript's engine to one character at a time, which takes
 * constant time.
 *
 * @param members - The text in the brackets, for the flag `u`.
 * @throws PatternError for properties that JavaScript does not know.
 */
export function compileClass(
  members: string,
  isNegated: boolean,
  { ignoresCase }: CharacterRules,
): (codePoint: number) => boolean {
  const wanted = compileMembers(members, ignoresCase);
  const isIn = (codePoint: number): boolean =>
    wanted.test(String.fromCodePoint(codePoint)) !== isNegated;
  const ascii = Uint8Array.from({ length: 128 }, (_, codePoint) => (isIn(codePoint) ? 1 : 0));
  return (codePoint) => (codePoint < 128 ? ascii[codePoint] === 1 : isIn(codePoint));
}

function compileMembers(members: string, ignoresCase: boolean): RegExp {
  try {
    return new RegExp(`^[${members}]$`, ignoresCase ? "iu" : "u");
  } catch (error) {
    throw new PatternError("it contains an unknown character class", {
      cause: error,
    });
  }
}

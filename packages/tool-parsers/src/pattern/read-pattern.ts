import { classCharacter, compileClass, namedClass } from "./character-class.ts";
import { PatternError, type Edge, type PatternNode } from "./pattern-node.ts";

/** The flags of a pattern: `i`, `m` and `s`. */
export interface PatternFlags {
  readonly ignoresCase?: boolean;
  /** True if `^` and `$` match at line breaks, too. */
  readonly isMultiline?: boolean;
  /** True if a dot matches any character. */
  readonly isDotAll?: boolean;
}

/** Maximum length of a pattern, in characters. */
const maxLength = 20_000;
/** Maximum nesting of groups. */
const maxDepth = 200;

/**
 * Parses a pattern as JavaScript does with the flag `u`. If that fails, parses it as JavaScript does without the
 * flag, or as Python does; Python's own constructs are never taken as literal text.
 *
 * @throws PatternError for an invalid pattern, and for back-references, possessive and atomic groups.
 */
export function readPattern(source: string, flags: PatternFlags = {}): PatternNode {
  if (source.length > maxLength)
    throw new PatternError(`it is longer than ${maxLength} characters`);
  const reader = new PatternReader([...source], isEcma(source) ? "javascript" : "any", flags);
  return reader.read();
}

/**
 * Reads a pattern of Python's package `regex`, with the flag DOTALL. Only parts that the package and JavaScript
 * understand alike are read: literals, classes, groups, alternatives, look-around, greedy and lazy repetitions.
 *
 * @throws PatternError naming the part that is not read.
 */
export function readRegexPattern(source: string): PatternNode {
  if (source.length > maxLength) {
    throw new PatternError(`it is longer than ${maxLength} characters`);
  }
  return new PatternReader([...source], "regex", { isDotAll: true }).read();
}

/** Letters, digits and underscores as Python's package `regex` has them, for use in brackets. */
export const regexWordClass = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}`;

const regexClasses: Readonly<Partial<Record<string, string>>> = {
  s: String.raw`\p{White_Space}`,
  S: String.raw`\P{White_Space}`,
  d: String.raw`\p{Nd}`,
  D: String.raw`\P{Nd}`,
  w: regexWordClass,
};

const regexWord = new RegExp(`^[${regexWordClass}]$`, "u");
const isRegexWord = (character: string | undefined): boolean =>
  character !== undefined && regexWord.test(character);
const regexWordEdge: Edge = (text, place) => {
  const before = /[^]$/u.exec(text.slice(Math.max(0, place - 2), place))?.[0];
  const after = text.codePointAt(place);
  return (
    isRegexWord(before) !==
    isRegexWord(after === undefined ? undefined : String.fromCodePoint(after))
  );
};

function isEcma(source: string): boolean {
  try {
    return new RegExp(source, "u").unicode;
  } catch {
    return false;
  }
}

/** Matches the constructs of Python that JavaScript lacks. */
const pythonOnly = /\(\?P<|\(\?[aimsuL]+\)|\\[AZ]/;

const controls: Readonly<Partial<Record<string, number>>> = {
  n: 10,
  r: 13,
  t: 9,
  f: 12,
  v: 11,
};

const textStart: Edge = (_, place) => place === 0;
const textEnd: Edge = (text, place) => place === text.length;
const pythonTextEnd: Edge = (text, place) =>
  place === text.length || (place === text.length - 1 && text[place] === "\n");
const isBreak = (character: string | undefined): boolean =>
  character !== undefined && /[\n\r\u2028\u2029]/.test(character);
const lineStart: Edge = (text, place) => place === 0 || isBreak(text[place - 1]);
const lineEnd: Edge = (text, place) => place === text.length || isBreak(text[place]);
const isWord = (character: string | undefined): boolean =>
  character !== undefined && /\w/.test(character);
const wordEdge: Edge = (text, place) => isWord(text[place - 1]) !== isWord(text[place]);

class PatternReader {
  readonly #source: readonly string[];
  readonly #isEcma: boolean;
  readonly #isPython: boolean;
  /** True if the pattern is one of Python's package `regex`. */
  readonly #isRegex: boolean;
  #index = 0;
  #depth = 0;
  #flags: Required<PatternFlags>;

  constructor(
    source: readonly string[],
    dialect: "javascript" | "any" | "regex",
    flags: PatternFlags,
  ) {
    this.#source = source;
    this.#isEcma = dialect === "javascript";
    this.#isRegex = dialect === "regex";
    this.#isPython = this.#isRegex || (!this.#isEcma && pythonOnly.test(source.join("")));
    this.#flags = { ignoresCase: false, isMultiline: false, isDotAll: false, ...flags };
  }

  read(): PatternNode {
    const node = this.#readChoice();
    if (this.#index < this.#source.length) this.#refuse("a closing parenthesis without its group");
    return node;
  }

  #readChoice(): PatternNode {
    const flags = this.#flags;
    const branches = [this.#readSequence()];
    while (this.#take("|")) branches.push(this.#readSequence());
    this.#flags = flags;
    return branches.length === 1 ? (branches[0] as PatternNode) : { type: "choice", branches };
  }

  #readSequence(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#index < this.#source.length && this.#peek() !== "|" && this.#peek() !== ")") {
      const part = this.#readAtom();
      if (part !== undefined) parts.push(this.#readRepeats(part));
    }
    return { type: "sequence", parts };
  }

  #readRepeats(part: PatternNode): PatternNode {
    const range = this.#readRange();
    if (range === undefined) return part;
    if (part.type === "edge" || part.type === "look")
      this.#refuse("a repetition without an operand");
    const [min, max] = range;
    if (min > max) this.#refuse("a repetition with a minimum above its maximum");
    const isLazy = this.#take("?");
    if (this.#peek() === "+") this.#refuse("a possessive repetition");
    if (["*", "?"].includes(this.#peek())) this.#refuse("a repetition of a repetition");
    return { type: "repeat", part, min, max, isLazy };
  }

  #readRange(): readonly [min: number, max: number] | undefined {
    if (this.#take("*")) return [0, Infinity];
    if (this.#take("+")) return [1, Infinity];
    if (this.#take("?")) return [0, 1];
    if (this.#peek() !== "{") return undefined;
    const rest = this.#ahead(24);
    const [whole, min = "", comma, max = ""] = /^\{(\d*)(?:(,)(\d*))?\}/.exec(rest) ?? [];
    if (whole === undefined || (min === "" && max === "")) return undefined;
    if (this.#isRegex && Math.max(min.length, max.length) > 4) return undefined;
    this.#index += whole.length;
    const least = min === "" ? 0 : Number(min);
    if (comma === undefined) return [least, least];
    return [least, max === "" ? Infinity : Number(max)];
  }

  /** Parses an item that can be repeated, or an assertion; `undefined` for flags and comments. */
  #readAtom(): PatternNode | undefined {
    const character = this.#next();
    const { isMultiline, isDotAll } = this.#flags;
    switch (character) {
      case "(":
        return this.#readGroup();
      case "[":
        return this.#readClass();
      case ".":
        return isDotAll ? anyCharacter : this.#classOf(String.raw`\n\r\u2028\u2029`, true);
      case "^":
        return { type: "edge", holds: isMultiline ? lineStart : textStart };
      case "$":
        return {
          type: "edge",
          holds: isMultiline ? lineEnd : this.#isPython ? pythonTextEnd : textEnd,
        };
      case "\\":
        return this.#readEscape();
      case "*":
      case "+":
      case "?":
        return this.#refuse("a repetition without an operand");
      default:
        // The package `regex` reads `{e<2}` as a fuzzy match with fewer than two errors.
        if (this.#isRegex && character === "{" && /[\w<,]/.test(this.#peek())) {
          this.#refuse("a brace that is not escaped");
        }
        return this.#literal(character.codePointAt(0) as number);
    }
  }

  #literal(codePoint: number): PatternNode {
    if (this.#flags.ignoresCase) return this.#classOf(classCharacter(codePoint), false);
    const literal = String.fromCodePoint(codePoint);
    return { type: "one", accepts: (given) => given === codePoint, literal };
  }

  #classOf(members: string, isNegated: boolean): PatternNode {
    const { ignoresCase } = this.#flags;
    const rules = { ignoresCase, isUnicode: this.#isPython };
    return { type: "one", accepts: compileClass(members, isNegated, rules) };
  }

  #readEscape(): PatternNode {
    const letter = this.#peek();
    const named = this.#readNamedClass();
    if (named !== undefined) return this.#classOf(named.members, named.isNegated);
    if (letter === "b" || letter === "B") {
      this.#index += 1;
      const isEdge = this.#isRegex ? regexWordEdge : wordEdge;
      const isInside: Edge = (text, place) => !isEdge(text, place);
      return { type: "edge", holds: letter === "b" ? isEdge : isInside };
    }
    if (!this.#isEcma && (this.#isRegex ? "AZ" : "AZz").includes(letter) && letter !== "") {
      this.#index += 1;
      return { type: "edge", holds: letter === "A" ? textStart : textEnd };
    }
    if (!this.#isRegex && /[1-9k]/.test(letter)) this.#refuse("a back-reference");
    return this.#literal(this.#readEscapedCharacter());
  }

  /** Parses `d`, `W`, `p{L}` and similar after a backslash; `undefined` if it is not a class. */
  #readNamedClass(): { readonly members: string; readonly isNegated: boolean } | undefined {
    const letter = this.#peek();
    // A negated class of several ranges cannot be written inside brackets.
    const base = this.#isPython && letter === "W" ? "w" : letter;
    const rules = { ignoresCase: false, isUnicode: this.#isPython };
    const named = this.#isRegex ? regexClasses[base] : namedClass(base, rules);
    if (named !== undefined) {
      this.#index += 1;
      return { members: named, isNegated: base !== letter };
    }
    if (this.#isRegex || (letter !== "p" && letter !== "P")) return undefined;
    const [whole, name] = /^.(?:\{([\w=]+)\}|([A-Z]))/.exec(this.#ahead(80)) ?? [];
    if (whole === undefined) return this.#refuse("a property without its name");
    this.#index += whole.length;
    return { members: `\\${letter}{${name ?? whole.slice(1)}}`, isNegated: false };
  }

  /** Parses an escape for one character, in classes and outside. */
  #readEscapedCharacter(): number {
    const letter = this.#next();
    const control = controls[letter];
    if (control !== undefined) return control;
    if (this.#isRegex) return this.#readRegexCharacter(letter);
    if (letter === "0" && !/\d/.test(this.#peek())) return 0;
    if (letter === "x") return this.#readHex(/^[\da-f]{2}/i);
    if (letter === "u") return this.#readUnicode();
    if (letter === "c" && /[a-z]/i.test(this.#peek())) {
      return (this.#next().codePointAt(0) as number) % 32;
    }
    if (letter === "a" && this.#isPython) return 7;
    if (/[\da-z]/i.test(letter)) this.#refuse(`the escape \\${letter}`);
    return letter.codePointAt(0) as number;
  }

  #readRegexCharacter(letter: string): number {
    if (letter === "a") return 7;
    if (letter === "x") return this.#readHex(/^[\da-f]{2}/i);
    if (letter === "u") return this.#readHex(/^[\da-f]{4}/i);
    if (/[\p{Alphabetic}\p{Nd}]/u.test(letter)) this.#refuse(`the escape \\${letter}`);
    return letter.codePointAt(0) as number;
  }

  #readUnicode(): number {
    const [braced, digits] = /^\{([\da-f]{1,8})\}/i.exec(this.#ahead(10)) ?? [];
    if (braced !== undefined && digits !== undefined) {
      this.#index += braced.length;
      const codePoint = Number.parseInt(digits, 16);
      return codePoint > 0x10ffff ? this.#refuse("a character beyond Unicode") : codePoint;
    }
    const first = this.#readHex(/^[\da-f]{4}/i);
    const [low] = /^\\u[\da-f]{4}/i.exec(this.#ahead(6)) ?? [];
    const second = low === undefined ? 0 : Number.parseInt(low.slice(2), 16);
    const isPair = first >= 0xd800 && first < 0xdc00 && second >= 0xdc00 && second < 0xe000;
    if (!isPair) return first;
    this.#index += 6;
    return 0x10000 + (first - 0xd800) * 0x400 + (second - 0xdc00);
  }

  #readHex(pattern: RegExp): number {
    const [digits] = pattern.exec(this.#ahead(4)) ?? [];
    if (digits === undefined) return this.#refuse("a broken escape");
    this.#index += digits.length;
    return Number.parseInt(digits, 16);
  }

  #readClass(): PatternNode {
    const isNegated = this.#take("^");
    if (!this.#isEcma && !this.#isRegex && this.#ahead(2) === "[:")
      this.#refuse("a named class such as [:alpha:]");
    let members = "";
    // In JavaScript, `[]` matches nothing; elsewhere a leading bracket is a character.
    let isFirst = !this.#isEcma;
    while (isFirst || this.#peek() !== "]") {
      if (!this.#isEcma && !this.#isRegex && this.#ahead(3) === "&&[")
        this.#refuse("a set within a class");
      members += this.#readClassMember();
      isFirst = false;
    }
    this.#index += 1;
    if (members === "") return isNegated ? anyCharacter : { type: "one", accepts: () => false };
    return this.#classOf(members, isNegated);
  }

  #readClassMember(): string {
    const start = this.#readClassCharacter();
    if (this.#isRegex) return this.#readRegexRange(start);
    if (typeof start === "string") return start;
    if (this.#peek() !== "-" || this.#source[this.#index + 1] === "]") return classCharacter(start);
    this.#index += 1;
    const end = this.#readClassCharacter();
    // A hyphen before a class is a literal hyphen.
    if (typeof end === "string") return `${classCharacter(start)}\\-${end}`;
    if (start > end) this.#refuse("a range that runs backwards");
    return `${classCharacter(start)}-${classCharacter(end)}`;
  }

  #readRegexRange(start: number | string): string {
    const first = typeof start === "string" ? start : classCharacter(start);
    if (this.#peek() !== "-" || this.#source[this.#index + 1] === "]") return first;
    this.#index += 1;
    const end = this.#readClassCharacter();
    if (typeof start === "string" || typeof end === "string" || start > end) {
      return this.#refuse("a broken range");
    }
    return `${first}-${classCharacter(end)}`;
  }

  /** Parses a character or a named class. */
  #readClassCharacter(): number | string {
    const character = this.#next();
    // The package `regex` warns of doubled signs, which it reserves for sets.
    const isSet = character === "[" || (character === this.#peek() && "-&~|".includes(character));
    if (this.#isRegex && isSet) this.#refuse("a set within a class");
    if (character !== "\\") return character.codePointAt(0) as number;
    const named = this.#readNamedClass();
    if (named?.isNegated === true) return this.#refuse(String.raw`the escape \W in a class`);
    if (named !== undefined) return named.members;
    return this.#take("b") ? 8 : this.#readEscapedCharacter();
  }

  #readGroup(): PatternNode | undefined {
    this.#depth += 1;
    if (this.#depth > maxDepth) this.#refuse(`groups deeper than ${maxDepth}`);
    const outer = this.#flags;
    const kind = this.#readGroupStart();
    if (kind === "nothing") {
      this.#depth -= 1;
      return undefined;
    }
    const part = this.#readChoice();
    if (!this.#take(")")) this.#refuse("a group without its end");
    this.#flags = outer;
    this.#depth -= 1;
    if (kind === "group") return { type: "sequence", parts: [part] };
    return "name" in kind ? { type: "capture", part, ...kind } : { type: "look", part, ...kind };
  }

  #readGroupStart(): GroupStart {
    if (!this.#take("?")) return "group";
    const rest = this.#ahead(200);
    const namePattern = this.#isRegex ? /^P?<([A-Za-z_]\w*)>/ : /^P?<([\p{L}_$][\p{L}\p{N}_$]*)>/u;
    const [whole, name] = namePattern.exec(rest) ?? [];
    if (whole !== undefined && name !== undefined) {
      this.#index += [...whole].length;
      return { name };
    }
    if (this.#take(":")) return "group";
    for (const [sign, isAhead, isNegated] of looks) {
      if (!rest.startsWith(sign)) continue;
      this.#index += sign.length;
      return { isAhead, isNegated };
    }
    if (this.#isRegex) return this.#refuse(`the group (?${rest.slice(0, 1)}`);
    if (this.#take("#")) {
      while (this.#next() !== ")");
      return "nothing";
    }
    return this.#readGroupFlags(rest);
  }

  /** Parses `(?i)`, which applies to the end of the enclosing group, and `(?i-s:`. */
  #readGroupFlags(rest: string): "group" | "nothing" {
    const [whole, on = "", off = "", end] = /^([aimsuL]*)(?:-([ims]+))?([:)])/.exec(rest) ?? [];
    if (whole === undefined || (end === ")" && this.#isEcma)) {
      return this.#refuse(`the group (?${rest.slice(0, 1)}`);
    }
    this.#index += whole.length;
    const isOn = (letter: string, before: boolean): boolean =>
      (before || on.includes(letter)) && !off.includes(letter);
    this.#flags = {
      ignoresCase: isOn("i", this.#flags.ignoresCase),
      isMultiline: isOn("m", this.#flags.isMultiline),
      isDotAll: isOn("s", this.#flags.isDotAll),
    };
    return end === ":" ? "group" : "nothing";
  }

  #peek(): string {
    return this.#source[this.#index] ?? "";
  }

  #ahead(length: number): string {
    return this.#source.slice(this.#index, this.#index + length).join("");
  }

  #next(): string {
    const character = this.#source[this.#index];
    if (character === undefined) return this.#refuse("an incomplete expression");
    this.#index += 1;
    return character;
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#index += 1;
    return true;
  }

  #refuse(what: string): never {
    throw new PatternError(`it holds ${what}`);
  }
}

type GroupStart =
  | "group"
  | "nothing"
  | { readonly name: string }
  | { readonly isAhead: boolean; readonly isNegated: boolean };

const anyCharacter: PatternNode = { type: "one", accepts: () => true };

const looks: readonly (readonly [sign: string, isAhead: boolean, isNegated: boolean])[] = [
  ["=", true, false],
  ["!", true, true],
  ["<=", false, false],
  ["<!", false, true],
];

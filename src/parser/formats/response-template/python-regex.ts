import { UsageError } from "../../../errors.ts";

/** A pattern of Python's `regex` package as JavaScript writes it. */
interface TranslatedPattern {
  /** For the flags `u` and `s`. */
  readonly source: string;
  /** Whether it can match the empty text. */
  readonly canBeEmpty: boolean;
  /** Names of all groups. */
  readonly names: readonly string[];
  /** Names of the groups that take part in every match. */
  readonly certainNames: readonly string[];
}

/** White space, digits and letters as Python's `regex` package has them, in JavaScript's classes. */
const classes: Readonly<Partial<Record<string, string>>> = {
  s: String.raw`\p{White_Space}`,
  S: String.raw`\P{White_Space}`,
  d: String.raw`\p{Nd}`,
  D: String.raw`\P{Nd}`,
};
export const wordClass = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}`;

const controls: Readonly<Partial<Record<string, string>>> = {
  n: "\n",
  r: "\r",
  t: "\t",
  f: "\f",
  v: "\v",
  a: "\u0007",
};

/** Assertions by what follows their backslash. */
const assertions: Readonly<Partial<Record<string, string>>> = {
  A: "^",
  Z: "$",
  b: `(?:(?<=[${wordClass}])(?![${wordClass}])|(?<![${wordClass}])(?=[${wordClass}]))`,
  B: `(?:(?<=[${wordClass}])(?=[${wordClass}])|(?<![${wordClass}])(?![${wordClass}]))`,
};

/**
 * Translates a pattern of Python's `regex` package, with DOTALL, where JavaScript can say exactly the
 * same: literals, classes, groups, alternatives, look-around, greedy and lazy repetitions.
 *
 * @throws UsageError naming what cannot be translated: flags, possessive repetitions, references to
 *   groups, groups that are captured again and again.
 */
export function translatePattern(pattern: string, place: string): TranslatedPattern {
  const reader = new PatternReader([...pattern], place);
  const { source, canBeEmpty, certain } = reader.readAlternatives(0);
  reader.requireEnd();
  return { source, canBeEmpty, names: reader.names, certainNames: certain };
}

/** A part of a pattern. */
interface Part {
  readonly source: string;
  readonly canBeEmpty: boolean;
  /** Names of groups that take part whenever this part matches. */
  readonly certain: readonly string[];
  /** Whether it can be repeated. */
  readonly isAtom: boolean;
  readonly hasGroup: boolean;
}

const nothing: Part = {
  source: "",
  canBeEmpty: true,
  certain: [],
  isAtom: false,
  hasGroup: false,
};

/** How deep groups may nest. */
const MAX_DEPTH = 50;

class PatternReader {
  readonly names: string[] = [];
  readonly #pattern: readonly string[];
  readonly #place: string;
  #index = 0;

  constructor(pattern: readonly string[], place: string) {
    this.#pattern = pattern;
    this.#place = place;
  }

  requireEnd(): void {
    if (this.#index < this.#pattern.length) this.#refuse("a closing parenthesis without its group");
  }

  readAlternatives(depth: number): Part {
    if (depth > MAX_DEPTH) this.#refuse(`groups deeper than ${MAX_DEPTH}`);
    const branches = [this.#readSequence(depth)];
    while (this.#take("|")) branches.push(this.#readSequence(depth));
    return {
      source: branches.map(({ source }) => source).join("|"),
      canBeEmpty: branches.some(({ canBeEmpty }) => canBeEmpty),
      certain: branches.length === 1 ? (branches[0]?.certain ?? []) : [],
      isAtom: false,
      hasGroup: branches.some(({ hasGroup }) => hasGroup),
    };
  }

  #readSequence(depth: number): Part {
    const parts: Part[] = [];
    while (this.#index < this.#pattern.length && !["|", ")"].includes(this.#peek())) {
      parts.push(this.#readRepeated(depth));
    }
    return {
      source: parts.map(({ source }) => source).join(""),
      canBeEmpty: parts.every(({ canBeEmpty }) => canBeEmpty),
      certain: parts.flatMap(({ certain }) => certain),
      isAtom: false,
      hasGroup: parts.some(({ hasGroup }) => hasGroup),
    };
  }

  #readRepeated(depth: number): Part {
    const part = this.#readAtom(depth);
    const range = this.#readRange();
    if (range === undefined) return part;
    if (!part.isAtom) this.#refuse("a repetition of nothing");
    const isOptional = range.source === "?";
    if (part.hasGroup && !isOptional) this.#refuse("a group that is captured in a repetition");
    if (part.canBeEmpty && (!isOptional || part.hasGroup)) {
      this.#refuse("a repetition of what can be empty");
    }
    const isLazy = this.#take("?");
    if (["+", "*", "?"].includes(this.#peek())) {
      this.#refuse("a possessive repetition, or one of a repetition");
    }
    if (this.#readRange() !== undefined) this.#refuse("a repetition of a repetition");
    return {
      ...nothing,
      source: `${part.source}${range.source}${isLazy ? "?" : ""}`,
      canBeEmpty: range.from === 0 || part.canBeEmpty,
      hasGroup: part.hasGroup,
    };
  }

  /** Reads `*`, `+`, `?`, `{2}`, `{2,}`, `{,3}` or `{2,3}`. */
  #readRange(): { readonly source: string; readonly from: number } | undefined {
    for (const sign of ["*", "+", "?"]) {
      if (this.#take(sign)) return { source: sign, from: sign === "+" ? 1 : 0 };
    }
    const rest = this.#pattern.slice(this.#index, this.#index + 16).join("");
    const [whole, from = "", comma, to = ""] = /^\{(\d{0,4})(?:(,)(\d{0,4}))?\}/.exec(rest) ?? [];
    if (whole === undefined || whole === "{}" || whole === "{,}") return undefined;
    if (comma !== undefined && to !== "" && Number(from) > Number(to)) {
      this.#refuse("a repetition whose least is more than its most");
    }
    this.#index += whole.length;
    const source = comma === undefined ? `{${from}}` : `{${from === "" ? "0" : from},${to}}`;
    return { source, from: Number(from) };
  }

  #readAtom(depth: number): Part {
    const character = this.#next();
    if (character === "(") return this.#readGroup(depth);
    if (character === "[") return { ...atom, source: this.#readClass() };
    if (character === ".") return { ...atom, source: "." };
    if (character === "^") return { ...nothing, source: "^" };
    // Before a line break that ends the text, too.
    if (character === "$") return { ...nothing, source: String.raw`(?=\n?$)` };
    if (character === "\\") return this.#readEscape();
    // The package reads `{e<2}` as leave for errors.
    if (character === "{" && /[\w<,]/.test(this.#peek()))
      this.#refuse("a brace that is not escaped");
    if (["*", "+", "?"].includes(character)) this.#refuse("a repetition of nothing");
    return { ...atom, source: spell(character) };
  }

  #readEscape(): Part {
    const character = this.#next();
    const assertion = assertions[character];
    if (assertion !== undefined) return { ...nothing, source: assertion };
    const named = classes[character];
    if (named !== undefined) return { ...atom, source: named };
    if (character === "w") return { ...atom, source: `[${wordClass}]` };
    if (character === "W") return { ...atom, source: `[^${wordClass}]` };
    return { ...atom, source: spell(this.#readLiteralEscape(character)) };
  }

  /** The character that an escape stands for, in classes and outside. */
  #readLiteralEscape(character: string): string {
    const control = controls[character];
    if (control !== undefined) return control;
    const length = { x: 2, u: 4 }[character];
    if (length !== undefined) {
      const digits = this.#pattern.slice(this.#index, this.#index + length).join("");
      if (!/^[\da-fA-F]+$/.test(digits) || digits.length < length) this.#refuse("a broken escape");
      this.#index += length;
      return String.fromCodePoint(Number.parseInt(digits, 16));
    }
    if (/[\p{Alphabetic}\p{Nd}]/u.test(character)) this.#refuse(`the escape \\${character}`);
    return character;
  }

  #readClass(): string {
    const isNegated = this.#take("^");
    let source = "";
    let isFirst = true;
    while (isFirst || this.#peek() !== "]") {
      source += this.#readClassMember();
      isFirst = false;
    }
    this.#index += 1;
    return `[${isNegated ? "^" : ""}${source}]`;
  }

  #readClassMember(): string {
    const start = this.#readClassCharacter();
    if (this.#peek() !== "-" || this.#pattern[this.#index + 1] === "]") return start.source;
    this.#index += 1;
    const end = this.#readClassCharacter();
    const [from, to] = [start.codePoint, end.codePoint];
    if (from === undefined || to === undefined || from > to) this.#refuse("a broken range");
    return `${start.source}-${end.source}`;
  }

  #readClassCharacter(): { readonly source: string; readonly codePoint?: number } {
    const character = this.#next();
    // The package warns of these, which may come to mean sets.
    const isSet = character === this.#peek() && ["-", "&", "~", "|"].includes(character);
    if (character === "[" || isSet) this.#refuse("a set within a class");
    if (character !== "\\") return literalOf(character);
    const escaped = this.#next();
    if (escaped === "w") return { source: wordClass };
    if (escaped === "W") this.#refuse(String.raw`the escape \W in a class`);
    if (escaped === "b") return literalOf("\b");
    const named = classes[escaped];
    return named === undefined ? literalOf(this.#readLiteralEscape(escaped)) : { source: named };
  }

  #readGroup(depth: number): Part {
    const [open, name] = this.#readGroupStart();
    const body = this.readAlternatives(depth + 1);
    if (!this.#take(")")) this.#refuse("a group without its end");
    if (open === "(?=" || open === "(?!" || open === "(?<=" || open === "(?<!") {
      if (body.hasGroup) this.#refuse("a group that is captured in a look-around");
      return { ...nothing, source: `${open}${body.source})` };
    }
    const isCapture = open === "(";
    return {
      ...atom,
      // Groups without a name are of no use to anyone.
      source: name === undefined ? `(?:${body.source})` : `(?<${name}>${body.source})`,
      canBeEmpty: body.canBeEmpty,
      certain: name === undefined ? body.certain : [name, ...body.certain],
      hasGroup: body.hasGroup || (isCapture && name !== undefined),
    };
  }

  #readGroupStart(): readonly [open: string, name?: string] {
    if (!this.#take("?")) return ["("];
    const rest = this.#pattern.slice(this.#index, this.#index + 80).join("");
    const named = /^P<([A-Za-z_][A-Za-z_0-9]*)>/.exec(rest) ?? /^<([A-Za-z_]\w*)>/.exec(rest);
    if (named !== null) {
      const [whole, name = ""] = named;
      this.#index += whole.length;
      if (this.names.includes(name)) this.#refuse(`two groups of the name ${JSON.stringify(name)}`);
      this.names.push(name);
      return ["(", name];
    }
    for (const sign of [":", "=", "!", "<=", "<!"]) {
      if (!rest.startsWith(sign)) continue;
      this.#index += sign.length;
      return [`(?${sign}`];
    }
    return this.#refuse(`the group (?${rest.slice(0, 1)}`);
  }

  #peek(): string {
    return this.#pattern[this.#index] ?? "";
  }

  #next(): string {
    const character = this.#pattern[this.#index];
    if (character === undefined) return this.#refuse("an end in the middle of something");
    this.#index += 1;
    return character;
  }

  #take(character: string): boolean {
    if (this.#peek() !== character) return false;
    this.#index += 1;
    return true;
  }

  #refuse(what: string): never {
    throw new UsageError(
      `Cannot translate the pattern ${JSON.stringify(this.#pattern.join(""))} of ${this.#place}: ` +
        `it holds ${what}, expected literals, classes, groups, alternatives, look-around and plain repetitions`,
    );
  }
}

const atom: Part = { ...nothing, canBeEmpty: false, isAtom: true };

function literalOf(character: string): { readonly source: string; readonly codePoint: number } {
  return { source: spell(character), codePoint: character.codePointAt(0) ?? 0 };
}

/** A character as a pattern with the flag `u` has it, in a class and outside. */
function spell(character: string): string {
  return /^[\p{Alphabetic}\p{Nd}_ "'<>=:;,@#%&~`!]$/u.test(character)
    ? character
    : `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`;
}

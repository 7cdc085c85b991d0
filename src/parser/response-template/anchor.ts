import type { PyDict } from "../../python/value.ts";
import { isPyList } from "../../python/value.ts";
import { translatePattern } from "./python-regex.ts";
import { templateProblem } from "./template-problem.ts";

/** What opens or closes a region: one of several literals, or a pattern. */
export interface Anchor {
  /** Global, so that it can be searched from a place on. */
  readonly pattern: RegExp;
  /** Absent for a pattern. */
  readonly literals?: readonly string[];
  /** Whether more text could lengthen a match that ends where the text does. */
  readonly canGrow: boolean;
  readonly canBeEmpty: boolean;
  /** Names of the pattern's groups. */
  readonly names: readonly string[];
}

/** The text as a pattern that matches it, for the flag `u`. */
export function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

/**
 * Reads `key` (a text, or a list of texts) or `key_pattern` of a template's object; `undefined` where it
 * has neither.
 *
 * @throws UsageError
 */
export function compileAnchor(spec: PyDict, key: string, place: string): Anchor | undefined {
  const pattern = spec.get(`${key}_pattern`);
  const literal = spec.get(key);
  if (literal !== undefined && pattern !== undefined) {
    throw templateProblem(`${place} has both ${key} and ${key}_pattern, expected one of them`);
  }
  if (literal !== undefined) {
    const literals = isPyList(literal) ? literal : [literal];
    const texts = literals.filter((each) => typeof each === "string" && each !== "") as string[];
    if (texts.length < literals.length || texts.length === 0) {
      throw templateProblem(`${place}.${key} is no text or list of texts, none of them empty`);
    }
    return fromLiterals([...new Set(texts)]);
  }
  if (pattern === undefined) return undefined;
  if (typeof pattern !== "string") throw templateProblem(`${place}.${key}_pattern is no text`);
  const { source, canBeEmpty, names } = translatePattern(pattern, `${place}.${key}_pattern`);
  return { pattern: new RegExp(source, "gsu"), canGrow: true, canBeEmpty, names };
}

function fromLiterals(literals: readonly string[]): Anchor {
  // The longest first, as far as several fit.
  const ordered = literals.toSorted((left, right) => right.length - left.length);
  return {
    pattern: new RegExp(ordered.map(escapePattern).join("|"), "gsu"),
    literals,
    canGrow: literals.some((left) =>
      literals.some((right) => left !== right && left.startsWith(right)),
    ),
    canBeEmpty: false,
    names: [],
  };
}

/** A match of an anchor. */
export interface AnchorMatch {
  readonly start: number;
  readonly end: number;
  /** What the named groups that took part hold. */
  readonly captures: Readonly<Record<string, string>>;
}

/** Searches one anchor in a text from places that only ever grow: each stretch is looked at once. */
export class AnchorSearch {
  readonly #anchor: Anchor;
  readonly #text: string;
  #found: AnchorMatch | undefined | "unknown" = "unknown";

  constructor(anchor: Anchor, text: string) {
    this.#anchor = anchor;
    this.#text = text;
  }

  /** The first match that starts at the place or behind it. */
  from(place: number): AnchorMatch | undefined {
    if (this.#found === "unknown" || (this.#found !== undefined && this.#found.start < place)) {
      const { pattern } = this.#anchor;
      pattern.lastIndex = place;
      const match = pattern.exec(this.#text);
      this.#found = match === null ? undefined : toMatch(match, pattern.lastIndex);
    }
    return this.#found;
  }
}

function toMatch({ index, groups = {} }: RegExpExecArray, end: number): AnchorMatch {
  const captures = Object.entries(groups).filter(([, value]) => value !== undefined);
  return { start: index, end, captures: Object.fromEntries(captures) };
}

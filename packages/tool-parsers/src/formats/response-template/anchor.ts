import { isPyList, type PyDict } from "../../../../python-values/src/index.ts";
import { readPythonRegex } from "./python-regex.ts";
import { templateProblem } from "./template-problem.ts";
import { searchLiterals, searchPattern, type TemplateSearch } from "./template-search.ts";

/** The start or the end of a region: one of several literals, or a pattern. */
export interface Anchor {
  readonly search: TemplateSearch;
  /** The literals. Absent for a pattern. */
  readonly literals?: readonly string[];
  /** True if more text could lengthen a match at the end of the text. */
  readonly canGrow: boolean;
  readonly canBeEmpty: boolean;
  /** Names of the pattern's groups. */
  readonly names: readonly string[];
}

/**
 * Reads `key` (a text, or a list of texts) or `key_pattern` of a template's object; `undefined` if
 * the object has neither.
 *
 * @throws UsageError if the object has both, or if their values are invalid.
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
      throw templateProblem(
        `${place}.${key} is neither a string nor a list of strings, none of them empty`,
      );
    }
    return fromLiterals([...new Set(texts)]);
  }
  if (pattern === undefined) return undefined;
  if (typeof pattern !== "string") throw templateProblem(`${place}.${key}_pattern is not a string`);
  const where = `${place}.${key}_pattern`;
  const { node, canBeEmpty, names } = readPythonRegex(pattern, where);
  return { search: searchPattern(node, where), canGrow: true, canBeEmpty, names };
}

function fromLiterals(literals: readonly string[]): Anchor {
  // The longest literal comes first, because several may match.
  const ordered = literals.toSorted((left, right) => right.length - left.length);
  return {
    search: searchLiterals(ordered),
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
  /** The texts of the named groups that took part in the match. */
  readonly captures: ReadonlyMap<string, string>;
}

/** Searches one anchor in a text from ascending places. Each part of the text is searched once. */
export class AnchorSearch {
  readonly #anchor: Anchor;
  readonly #text: string;
  #found: AnchorMatch | undefined | "unknown" = "unknown";

  constructor(anchor: Anchor, text: string) {
    this.#anchor = anchor;
    this.#text = text;
  }

  /** The first match that starts at or after the place. */
  from(place: number): AnchorMatch | undefined {
    if (this.#found === "unknown" || (this.#found !== undefined && this.#found.start < place)) {
      this.#found = this.#search(place);
    }
    return this.#found;
  }

  #search(place: number): AnchorMatch | undefined {
    const match = this.#anchor.search(this.#text, place);
    if (match === undefined) return undefined;
    return { start: match.start, end: match.end, captures: match.groups() };
  }
}

import { literalPrefix } from "./literal-prefix.ts";
import type { PatternNode } from "./pattern-node.ts";
import { capturesOf, PatternSearch, toProgram } from "./pattern-program.ts";
import { readPattern, type PatternFlags } from "./read-pattern.ts";
import type { StepBudget } from "./step-budget.ts";

/** A match of a pattern. */
export interface PatternMatch {
  readonly start: number;
  /** The end of the match, exclusive. */
  readonly end: number;
  /** The texts of the named groups in the match. */
  readonly groups: () => ReadonlyMap<string, string>;
}

/**
 * A foreign pattern that runs without backtracking: the time grows linearly with the text and the pattern, and each
 * step is counted.
 */
export interface LinearPattern {
  /**
   * True if the text contains a match.
   *
   * @throws StepLimitError
   */
  readonly test: (text: string, budget: StepBudget) => boolean;
  /**
   * Finds the first match at or after `from`: the same match as JavaScript's own engine, except that a repetition
   * may end with an empty text.
   *
   * @throws StepLimitError
   */
  readonly find: (text: string, from: number, budget: StepBudget) => PatternMatch | undefined;
}

/**
 * Compiles a foreign pattern in JavaScript's or Python's syntax.
 *
 * @throws PatternError for an invalid pattern, and for back-references, possessive and atomic groups.
 */
export function compilePattern(source: string, flags: PatternFlags = {}): LinearPattern {
  return compileNode(readPattern(source, flags));
}

/**
 * Compiles a pattern that `readPattern()` or `readRegexPattern()` read.
 *
 * @throws PatternError if its repetitions make it too large.
 */
export function compileNode(node: PatternNode): LinearPattern {
  const program = toProgram(node);
  const prefix = literalPrefix(node);
  const find = (text: string, from: number, budget: StepBudget): PatternMatch | undefined => {
    const search = new PatternSearch(text, budget);
    for (let start = from; start <= text.length; start++) {
      if (prefix !== "") {
        const found = text.indexOf(prefix, start);
        // Searching a literal costs far less than a step for each character.
        budget.spend(((found === -1 ? text.length : found) - start) >>> 3);
        if (found === -1) return undefined;
        start = found;
      }
      // Skips positions within a surrogate pair.
      if (start > from && (text.codePointAt(start - 1) ?? 0) > 0xffff) continue;
      const match = search.run(program, start);
      if (match !== undefined) {
        return { start, end: match.end, groups: () => capturesOf(text, match) };
      }
    }
    return undefined;
  };
  return { find, test: (text, budget) => find(text, 0, budget) !== undefined };
}

/**
 * Yields the non-overlapping matches of a pattern from left to right.
 *
 * @throws StepLimitError
 */
export function* findAll(
  pattern: LinearPattern,
  text: string,
  budget: StepBudget,
): Generator<PatternMatch> {
  for (let from = 0; from <= text.length;) {
    const match = pattern.find(text, from, budget);
    if (match === undefined) return;
    yield match;
    const isPair = (text.codePointAt(match.end) ?? 0) > 0xffff;
    from = match.end + (match.end > match.start ? 0 : isPair ? 2 : 1);
  }
}

/**
 * Returns the text without the matches of the pattern.
 *
 * @throws StepLimitError
 */
export function removeAll(pattern: LinearPattern, text: string, budget: StepBudget): string {
  let kept = "";
  let from = 0;
  for (const { start, end } of findAll(pattern, text, budget)) {
    kept += text.slice(from, start);
    from = end;
  }
  return kept + text.slice(from);
}

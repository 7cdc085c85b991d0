import { literalPrefix } from "./literal-prefix.ts";
import type { PatternNode } from "./pattern-node.ts";
import { capturesOf, PatternSearch, toProgram } from "./pattern-program.ts";
import { readPattern, type PatternFlags } from "./read-pattern.ts";
import type { StepBudget } from "./step-budget.ts";

/** A place where a pattern matches. */
export interface PatternMatch {
  readonly start: number;
  /** The end of the match, exclusive. */
  readonly end: number;
  /** The texts of the named groups that take part. */
  readonly groups: () => ReadonlyMap<string, string>;
}

/**
 * A pattern from outside, which runs without backtracking: the time grows with the text and the pattern,
 * and each step counts.
 */
export interface LinearPattern {
  /**
   * Tells if the text holds a match.
   *
   * @throws StepLimitError
   */
  readonly test: (text: string, budget: StepBudget) => boolean;
  /**
   * Finds the first match from a place on: the one that JavaScript's own engine finds, but that a
   * repetition may end with the empty text.
   *
   * @throws StepLimitError
   */
  readonly find: (text: string, from: number, budget: StepBudget) => PatternMatch | undefined;
}

/**
 * Compiles a pattern that somebody else wrote, in JavaScript's form or in Python's.
 *
 * @throws PatternError for what is no pattern, and for back-references, possessive and atomic groups.
 */
export function compilePattern(source: string, flags: PatternFlags = {}): LinearPattern {
  return compileNode(readPattern(source, flags));
}

/**
 * Compiles a pattern that was read.
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
        // Far less than a step for each character.
        budget.spend(((found === -1 ? text.length : found) - start) >>> 3);
        if (found === -1) return undefined;
        start = found;
      }
      // Not in the middle of a character.
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
 * The matches of a pattern from left to right, none of which overlap.
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
 * The text without what the pattern matches.
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

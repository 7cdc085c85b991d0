import { toProgram, PatternSearch } from "./pattern-program.ts";
import { readPattern, type PatternFlags } from "./read-pattern.ts";
import type { StepBudget } from "./step-budget.ts";

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
   * Leaves out every match, from left to right.
   *
   * @throws StepLimitError
   */
  readonly removeAll: (text: string, budget: StepBudget) => string;
}

/**
 * Compiles a pattern that somebody else wrote, in JavaScript's form or in Python's.
 *
 * @throws PatternError for what is no pattern, and for back-references, possessive and atomic groups.
 */
export function compilePattern(source: string, flags: PatternFlags = {}): LinearPattern {
  const program = toProgram(readPattern(source, flags));
  const find = (text: string, from: number, budget: StepBudget) => {
    const search = new PatternSearch(text, budget);
    for (let start = from; start <= text.length; start++) {
      // Not in the middle of a character.
      if (start > from && (text.codePointAt(start - 1) ?? 0) > 0xffff) continue;
      const end = search.run(program, start);
      if (end !== undefined) return { start, end };
    }
    return undefined;
  };
  return {
    test: (text, budget) => find(text, 0, budget) !== undefined,
    removeAll(text, budget) {
      let kept = "";
      let from = 0;
      for (let found = find(text, 0, budget); found !== undefined; ) {
        kept += text.slice(from, found.start);
        from = found.end;
        const next = found.end === found.start ? found.end + 1 : found.end;
        found = next > text.length ? undefined : find(text, next, budget);
      }
      return kept + text.slice(from);
    },
  };
}

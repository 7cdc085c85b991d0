import { describeError } from "../../../../python-values/src/support/index.ts";
import { compileNode, type PatternMatch } from "../../pattern/compile-pattern.ts";
import type { PatternNode } from "../../pattern/pattern-node.ts";
import { StepBudget, StepLimitError } from "../../pattern/step-budget.ts";
import { templateProblem } from "./template-problem.ts";

/** A function that finds the first match in a text at or after a position. */
export type TemplateSearch = (text: string, from: number) => PatternMatch | undefined;

/** Number of steps that a search may take, in addition to those for each character of the text. */
const baseSteps = 1_000_000;
const stepsPerCharacter = 100;

/**
 * Makes the linear-time search for a template's pattern, which runs on sampled text.
 *
 * @throws UsageError for a pattern that is too large. The returned search throws UsageError for a text that takes too
 *   many steps.
 */
export function searchPattern(node: PatternNode, place: string): TemplateSearch {
  const { find } = compile(node, place);
  return (text, from) => {
    try {
      return find(text, from, new StepBudget(baseSteps + stepsPerCharacter * text.length));
    } catch (error) {
      if (!(error instanceof StepLimitError)) throw error;
      throw templateProblem(
        `${place} is too slow for a turn of ${text.length} characters: ${error.message}`,
      );
    }
  };
}

function compile(node: PatternNode, place: string) {
  try {
    return compileNode(node);
  } catch (error) {
    throw templateProblem(`${place} cannot be used: ${describeError(error)}`);
  }
}

/** Makes the search for the first of several literals, which are tried in order. */
export function searchLiterals(literals: readonly string[]): TemplateSearch {
  const pattern = new RegExp(literals.map(escapePattern).join("|"), "gsu");
  return (text, from) => {
    pattern.lastIndex = from;
    const match = pattern.exec(text);
    if (match === null) return undefined;
    return { start: match.index, end: pattern.lastIndex, groups: () => new Map() };
  };
}

/** Returns a pattern, for the flag `u`, that matches exactly the text. */
export function escapePattern(text: string): string {
  return text.replaceAll(/[\\^$.*+?()[\]{}|/]/g, String.raw`\$&`);
}

import type { JinjaFilter } from "../syntax/ast.ts";
import type { Compile } from "./call.ts";
import { compileArguments } from "./call.ts";
import type { Evaluate } from "./frame.ts";
import { spendOn } from "./budget.ts";
import { templateSyntaxError } from "../syntax/token.ts";
import { findFilter } from "../filters/template-filters.ts";
import { findTest } from "../filters/template-tests.ts";
import { runtimeError } from "../values/template-value.ts";

/** The position of a filter or test. */
interface FilterPlace {
  readonly compile: Compile;
  /** True within a condition, in which Jinja looks up filters and tests only when they are called. */
  readonly soft: boolean;
}

/**
 * Applies a filter to the result of `operand`.
 *
 * @throws UsageError if the filter does not exist and Jinja looks it up at compile time.
 */
export function compileFilter(
  operand: Evaluate,
  { name, args, line }: JinjaFilter,
  place: FilterPlace,
): Evaluate {
  const filter = findFilter(name);
  if (filter === undefined) return missing("filter", name, line, place);
  const given = compileArguments(args, place.compile);
  return (frame) => {
    const value = operand(frame);
    spendOn(value);
    const result = filter(value, given(frame));
    spendOn(result);
    return result;
  };
}

/**
 * Applies a test to the result of `operand`.
 *
 * @throws UsageError if the test does not exist and Jinja looks it up at compile time.
 */
export function compileTest(
  operand: Evaluate,
  { name, args, line }: JinjaFilter,
  place: FilterPlace,
): Evaluate {
  const test = findTest(name);
  if (test === undefined) return missing("test", name, line, place);
  const given = compileArguments(args, place.compile);
  return (frame) => test(operand(frame), given(frame));
}

function missing(
  what: "filter" | "test",
  name: string,
  line: number,
  { soft }: FilterPlace,
): Evaluate {
  if (!soft) throw templateSyntaxError(line, `no ${what} named '${name}'`);
  return () => {
    throw runtimeError(`No ${what} named '${name}' found.`);
  };
}

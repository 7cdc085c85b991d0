import type { JinjaFilter } from "../syntax/ast.ts";
import type { Compile } from "./call.ts";
import { compileArguments } from "./call.ts";
import type { Evaluate } from "./frame.ts";
import { spendOn } from "./budget.ts";
import { templateSyntaxError } from "../syntax/token.ts";
import { findFilter } from "../filters/template-filters.ts";
import { findTest } from "../filters/template-tests.ts";
import { runtimeError } from "../values/template-value.ts";

/** Where a filter or test stands. */
interface FilterPlace {
  readonly compile: Compile;
  /** Within a condition Jinja looks filters and tests up only when they are called. */
  readonly soft: boolean;
}

/**
 * Applies a filter to what `operand` computes.
 *
 * @throws UsageError where no such filter exists and Jinja looks for it at once.
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
 * Applies a test to what `operand` computes.
 *
 * @throws UsageError where no such test exists and Jinja looks for it at once.
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

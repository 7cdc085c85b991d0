import type { Expression } from "./expression.ts";

/** The depth of CPython's tree of the expression: 0 for a number, plus 1 for each operation. */
export function expressionDepth(expression: Expression): number {
  switch (expression.type) {
    case "chain":
      return expression.rest.reduce(
        (depth, { operand }) => Math.max(depth, expressionDepth(operand)) + 1,
        expressionDepth(expression.first),
      );
    case "power":
      return expression.factors.reduceRight((depth, { signs, base }, index) => {
        const isLast = index === expression.factors.length - 1;
        return Math.max(depth, expressionDepth(base)) + (isLast ? 0 : 1) + signs.length;
      }, 0);
    case "call":
      return expression.calls.reduce(
        (depth, call) =>
          Math.max(depth, call.type === "empty" ? 0 : expressionDepth(call.argument)) + 1,
        expressionDepth(expression.called),
      );
    default:
      return 0;
  }
}

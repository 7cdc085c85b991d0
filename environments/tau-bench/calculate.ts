import { iterate } from "../../packages/python-values/src/iterate.ts";
import { contains } from "../../packages/python-values/src/contains.ts";
import { ERROR_PREFIX } from "./call-tool.ts";
import { evaluateExpression } from "./calculator/evaluate-expression.ts";
import { defineTool } from "./tau-tool.ts";

const allowedCharacters = "0123456789+-*/(). ";

/**
 * The calculator of both domains. The original passes the text to Python's `eval()`; this evaluator gives the same
 * answers and runs no code.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/retail/tools/calculate.py.
 */
export const calculate = defineTool({
  name: "calculate",
  className: "Calculate",
  parameters: ["expression"],
  run(_database, { expression }) {
    if (!iterate(expression).every((character) => contains(allowedCharacters, character))) {
      return `${ERROR_PREFIX}invalid characters in expression`;
    }
    return typeof expression === "string"
      ? evaluateExpression(expression)
      : `${ERROR_PREFIX}eval() arg 1 must be a string, bytes or code object`;
  },
});

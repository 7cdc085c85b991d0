import type { SyntaxNode } from "@lezer/common";
import { UsageError } from "../../../src/errors.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { evaluateLiteral } from "./evaluate-literal.ts";
import type { PythonModule } from "./python-module.ts";
import {
  assignedValue,
  childrenOf,
  importedModules,
  methodBody,
  textOf,
  unreadable,
} from "./python-module.ts";

/** A tool's class and the module that defines it. */
interface ToolClass {
  readonly className: string;
  /** The file's name without `.py`, within the folder of the tools. */
  readonly module: string;
}

/**
 * Returns the tools of a domain in order: the list `ALL_TOOLS` of classes that the package imports.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/<domain>/tools/__init__.py.
 *
 * @throws UsageError naming file and line of an entry that is not an imported class.
 */
export function readToolClasses(module: PythonModule): readonly ToolClass[] {
  const list = assignedValue(module, "ALL_TOOLS");
  const modules = importedModules(module);
  if (list.name !== "ArrayExpression") {
    throw unreadable(module, list, "another form", "a list of classes");
  }
  return childrenOf(list, ["[", "]", ","]).map((entry) => {
    const className = textOf(module, entry);
    const stem = modules.get(className);
    if (stem !== undefined) return { className, module: stem };
    throw unreadable(module, entry, className, "a class that `from .module import …` brings in");
  });
}

/**
 * Returns a tool's definition in OpenAI's form, the result of its `get_info()`.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/envs/<domain>/tools/*.py.
 *
 * @throws UsageError naming file and line if it returns anything but one literal.
 */
export function readToolInfo(module: PythonModule, className: string): PyValue {
  const body = methodBody(module, className, "get_info");
  if (body === undefined) {
    throw new UsageError(
      `Cannot read ${module.file}: expected class ${className} with a method get_info()`,
    );
  }
  return evaluateLiteral(module, returnedValue(module, body));
}

function returnedValue(module: PythonModule, body: SyntaxNode): SyntaxNode {
  const statements = childrenOf(body, [":"]).filter((node) => !isDocumentation(node));
  const [only, ...more] = statements;
  const [keyword, value, ...rest] = only === undefined ? [] : childrenOf(only);
  const isReturn = only?.name === "ReturnStatement" && keyword?.name === "return";
  if (isReturn && value !== undefined && rest.length === 0 && more.length === 0) return value;
  throw unreadable(module, only ?? body, "another body", "one `return` of a literal");
}

function isDocumentation(node: SyntaxNode): boolean {
  return node.name === "ExpressionStatement" && node.firstChild?.name === "String";
}

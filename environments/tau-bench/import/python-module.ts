import type { SyntaxNode } from "@lezer/common";
import { parser } from "@lezer/python";
import { UsageError } from "../../../src/errors.ts";
import { catchPython } from "../../../packages/tool-parsers/src/shared/python/python-catch.ts";
import { parseExpression } from "../../../packages/tool-parsers/src/shared/python-source/expression.ts";

/** A Python source file as a syntax tree. It is read, never run. */
export interface PythonModule {
  /** The file's name in messages. */
  readonly file: string;
  /** The text with line feeds only. */
  readonly source: string;
  readonly root: SyntaxNode;
}

/**
 * Parses a Python source file. Line ends become line feeds, as in Python's own reader.
 *
 * @throws UsageError naming file and line of invalid Python.
 */
export function readPythonModule(text: string, file: string): PythonModule {
  const source = text.replace(/^\uFEFF/, "").replace(/\r\n?/g, "\n");
  const module: PythonModule = { file, source, root: parser.parse(source).topNode };
  const broken = firstError(module);
  if (broken !== undefined) throw unreadable(module, broken, "broken Python", "Python source");
  return module;
}

function firstError({ root, source }: PythonModule): SyntaxNode | undefined {
  const cursor = root.cursor();
  do {
    if (cursor.type.isError && !isPointAtEnd(cursor.node, source)) return cursor.node;
  } while (cursor.next());
  return undefined;
}

/** True for a float that ends with a point. The grammar does not know these and reads `5.` as a broken attribute. */
function isPointAtEnd({ parent }: SyntaxNode, source: string): boolean {
  if (parent?.name !== "MemberExpression") return false;
  const text = source.slice(parent.from, parent.to);
  return catchPython(() => parseExpression(text))?.type === "constant";
}

/** The node's source text. */
export function textOf(module: PythonModule, node: SyntaxNode): string {
  return module.source.slice(node.from, node.to);
}

/** The error about a place in a module: "Cannot read <file>:<line>: <found>, expected …". */
export function unreadable(
  module: PythonModule,
  place: { readonly from: number },
  found: string,
  expected: string,
): UsageError {
  const line = module.source.slice(0, place.from).split("\n").length;
  return new UsageError(`Cannot read ${module.file}:${line}: ${found}, expected ${expected}`);
}

/** The node's children that are not punctuation of the given names. */
export function childrenOf(node: SyntaxNode, but: readonly string[] = []): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child !== null; child = child.nextSibling) {
    if (!but.includes(child.name) && child.name !== "Comment") children.push(child);
  }
  return children;
}

/**
 * Returns the value of the last assignment to a target, such as `RULES` or `self.terminate_tools`, among a node's
 * own statements; `undefined` without an assignment.
 *
 * @throws UsageError if the assignment is not a plain `target = value`.
 */
export function findAssignment(
  module: PythonModule,
  statements: SyntaxNode,
  target: string,
): SyntaxNode | undefined {
  let value: SyntaxNode | undefined;
  for (const statement of childrenOf(statements)) {
    if (statement.name !== "AssignStatement") continue;
    const [left, ...rest] = childrenOf(statement, ["TypeDef"]);
    if (left === undefined || textOf(module, left) !== target) continue;
    const [operator, only, ...more] = rest;
    if (operator?.name !== "AssignOp" || only === undefined || more.length > 0) {
      throw unreadable(module, statement, "another form", `${target} = one literal`);
    }
    value = only;
  }
  return value;
}

/**
 * Returns the value that a module assigns to a name at its top level.
 *
 * @throws UsageError without an assignment.
 */
export function assignedValue(module: PythonModule, name: string): SyntaxNode {
  const value = findAssignment(module, module.root, name);
  if (value !== undefined) return value;
  throw new UsageError(`Cannot read ${module.file}: expected "${name} = …" at its top level`);
}

/** The body of a method of a top-level class; `undefined` if it does not exist. */
export function methodBody(
  module: PythonModule,
  className: string,
  methodName: string,
): SyntaxNode | undefined {
  const definition = definitions(module.root, "ClassDefinition").find(
    (node) => nameOf(module, node) === className,
  );
  const method = definitions(definition?.getChild("Body") ?? undefined, "FunctionDefinition").find(
    (node) => nameOf(module, node) === methodName,
  );
  return method?.getChild("Body") ?? undefined;
}

/** The names of the module's top-level classes, in order. */
export function classNames(module: PythonModule): readonly string[] {
  return definitions(module.root, "ClassDefinition").map((node) => nameOf(module, node));
}

function definitions(within: SyntaxNode | undefined, kind: string): SyntaxNode[] {
  if (within === undefined) return [];
  return childrenOf(within).flatMap((node) => {
    const inner = node.name === "DecoratedStatement" ? node.getChild(kind) : node;
    return inner?.name === kind ? [inner] : [];
  });
}

function nameOf(module: PythonModule, definition: SyntaxNode): string {
  const name = definition.getChild("VariableName");
  return name === null ? "" : textOf(module, name);
}

/** The last part of the module name for each name that `from .module import Name` imports. */
export function importedModules(module: PythonModule): ReadonlyMap<string, string> {
  const modules = new Map<string, string>();
  for (const statement of childrenOf(module.root)) {
    if (statement.name !== "ImportStatement") continue;
    const match = /^from\s+(?:[\w.]*\.)?([A-Za-z_]\w*)\s+import\s+([^#]+)$/.exec(
      textOf(module, statement),
    );
    if (match === null) continue;
    for (const name of match[2]!.replace(/[()\\]/g, " ").split(",")) {
      if (name.trim() !== "") modules.set(name.trim(), match[1]!);
    }
  }
  return modules;
}

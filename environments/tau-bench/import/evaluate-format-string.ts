import type { SyntaxNode } from "@lezer/common";
import type { PythonModule } from "./python-module.ts";
import { childrenOf, textOf, unreadable } from "./python-module.ts";

/**
 * Returns the text of a triple-quoted f-string that contains only given names as expressions. Used for the prompts
 * that the original writes this way; other f-strings are refused.
 *
 * @throws UsageError naming file and line of any other name, expression or backslash.
 */
export function evaluateFormatString(
  module: PythonModule,
  node: SyntaxNode,
  names: ReadonlyMap<string, string>,
): string {
  const text = textOf(module, node);
  if (node.name !== "FormatString" || !/^[fF]"""[^]*"""$/.test(text) || text.includes("\\")) {
    throw unreadable(module, node, "another text", 'f"""…""" without a backslash');
  }
  let value = "";
  let from = node.from + 'f"""'.length;
  for (const place of childrenOf(node)) {
    value += unescapeBraces(module.source.slice(from, place.from));
    value += fill(module, place, names);
    from = place.to;
  }
  return value + unescapeBraces(module.source.slice(from, node.to - '"""'.length));
}

function fill(module: PythonModule, place: SyntaxNode, names: ReadonlyMap<string, string>): string {
  const name = textOf(module, place).slice(1, -1);
  const value = names.get(name);
  if (value !== undefined) return value;
  const known = [...names.keys()].join(", ");
  throw unreadable(module, place, `{${name}} in an f-string`, `one of the names ${known}`);
}

function unescapeBraces(text: string): string {
  return text.replaceAll("{{", "{").replaceAll("}}", "}");
}

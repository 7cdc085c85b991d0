import type { JinjaExpression, JinjaTarget } from "./ast.ts";
import { parseTargetExpression } from "./expression-parser.ts";
import type { JinjaTokenCursor } from "./token-cursor.ts";

/** Options of targets. */
interface TargetOptions {
  /** True if it may be a member of a namespace, as in `set ns.count = 1`. */
  readonly withNamespace: boolean;
}

/** Parses one name as a target. */
export function parseTargetName(cursor: JinjaTokenCursor): string {
  const target = toTarget(cursor, { type: "name", name: cursor.expectName() });
  return (target as { name: string }).name;
}

/** Parses one target or several separated by commas. */
export function parseTarget(cursor: JinjaTokenCursor, options: TargetOptions): JinjaTarget {
  const items: JinjaTarget[] = [];
  let isTuple = false;
  while (!cursor.isName("in") && cursor.current.type !== "block-end") {
    items.push(parseSingleTarget(cursor, options));
    if (!cursor.skipOperator(",")) break;
    isTuple = true;
  }
  const [only] = items;
  if (only === undefined) throw cursor.unexpected("a name to assign to");
  return isTuple ? { type: "tuple", items } : only;
}

function parseSingleTarget(
  cursor: JinjaTokenCursor,
  { withNamespace }: TargetOptions,
): JinjaTarget {
  if (withNamespace && cursor.isName() && cursor.nextIs("operator", ".")) {
    const name = cursor.expectName();
    cursor.advance();
    return { type: "namespace", name, attribute: cursor.expectName() };
  }
  return toTarget(cursor, parseTargetExpression(cursor));
}

const reservedNames: ReadonlySet<string> = new Set([
  "true",
  "false",
  "none",
  "True",
  "False",
  "None",
]);

/**
 * Converts an expression to the target of an assignment.
 *
 * @throws UsageError if the expression is not a valid target.
 */
function toTarget(cursor: JinjaTokenCursor, expression: JinjaExpression): JinjaTarget {
  if (expression.type === "name" && !reservedNames.has(expression.name)) {
    return { type: "name", name: expression.name };
  }
  if (expression.type === "tuple") {
    return { type: "tuple", items: expression.items.map((item) => toTarget(cursor, item)) };
  }
  throw cursor.problem(`cannot assign to a ${expression.type}`);
}

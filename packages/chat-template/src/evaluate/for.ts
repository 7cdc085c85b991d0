import type { JinjaFor } from "../syntax/ast.ts";
import type { Assign } from "./assign.ts";
import { compileAssign } from "./assign.ts";
import { nest, spend } from "./budget.ts";
import { compileExpression } from "./expression.ts";
import type {
  CompileStatements,
  Evaluate,
  Execute,
  Flow,
  Frame,
  Output,
  StatementPlace,
} from "./frame.ts";
import { compileEntry } from "./frame.ts";
import { Loop } from "./loop.ts";
import { analyzeStatements, JinjaScope, loadNames, storeNames, usesName } from "./scope.ts";
import { isTruthy, iterate, lengthOf } from "../values/template-iterate.ts";
import type { TemplateValue } from "../values/template-value.ts";

/** Compiles a loop. */
export function compileFor(
  node: JinjaFor,
  place: StatementPlace,
  compileStatements: CompileStatements,
): Execute {
  const iterable = compileExpression(node.iterable, { scope: place.scope, soft: false });
  const code: LoopCode = {
    ...compileBody(node, place.scope, compileStatements),
    filter: node.filter === undefined ? undefined : compileFilterOf(node, place.scope),
    otherwise: compileOtherwise(node, place, compileStatements),
    recursive: node.recursive,
    line: node.line,
  };
  return (frame, output) => runLoop(code, frame, output, iterable(frame), 0);
}

interface LoopCode {
  readonly enter: (parent: Frame) => Frame;
  readonly assign: Assign;
  /** The slot of `loop`, if the body uses it. */
  readonly loopSlot: number | undefined;
  readonly body: Execute;
  readonly filter:
    | ((frame: Frame, items: Iterable<TemplateValue>) => Iterable<TemplateValue>)
    | undefined;
  readonly otherwise: Execute | undefined;
  readonly recursive: boolean;
  readonly line: number;
}

function compileBody(
  node: JinjaFor,
  outer: JinjaScope,
  compileStatements: CompileStatements,
): Pick<LoopCode, "enter" | "assign" | "loopSlot" | "body"> {
  const scope = new JinjaScope(outer);
  const namesLoop = node.recursive || usesName(node.body, "loop");
  if (namesLoop) scope.declare("loop");
  storeNames(scope, node.target, { declared: true });
  analyzeStatements(scope, node.body);
  const body = compileStatements(node.body, { scope, soft: false, inLoop: true });
  return {
    assign: compileAssign(node.target, scope),
    loopSlot: namesLoop ? scope.find("loop")?.slot : undefined,
    body,
    enter: compileEntry(scope),
  };
}

function compileFilterOf(node: JinjaFor, outer: JinjaScope): NonNullable<LoopCode["filter"]> {
  const scope = new JinjaScope(outer);
  storeNames(scope, node.target, { declared: true });
  loadNames(scope, node.filter);
  const test = compileExpression(node.filter as NonNullable<JinjaFor["filter"]>, {
    scope,
    soft: false,
  });
  const assign = compileAssign(node.target, scope);
  const enter = compileEntry(scope);
  return (frame, items) => filterItems(enter(frame), items, { assign, test });
}

/** Lazy, as in Python: a body may change a namespace that the condition reads. */
function* filterItems(
  frame: Frame,
  items: Iterable<TemplateValue>,
  { assign, test }: { readonly assign: Assign; readonly test: Evaluate },
): Iterable<TemplateValue> {
  for (const item of items) {
    spend(1);
    assign(frame, item);
    if (isTruthy(test(frame))) yield item;
  }
}

function compileOtherwise(
  node: JinjaFor,
  place: StatementPlace,
  compileStatements: CompileStatements,
): Execute | undefined {
  if (node.otherwise.length === 0) return undefined;
  const scope = new JinjaScope(place.scope);
  analyzeStatements(scope, node.otherwise);
  const run = compileStatements(node.otherwise, { scope, soft: false, inLoop: place.inLoop });
  const enter = compileEntry(scope);
  return (frame, output) => run(enter(frame), output);
}

function runLoop(
  code: LoopCode,
  frame: Frame,
  output: Output,
  items: TemplateValue,
  depth: number,
): Flow {
  const all = iterate(items);
  const loop = new Loop(code.filter === undefined ? all : code.filter(frame, all), {
    length: code.filter === undefined ? lengthOf(items) : undefined,
    depth,
    recursion: code.recursive
      ? (children, childDepth) => {
          const inner: Output = { text: "" };
          nest(() => runLoop(code, frame, inner, children, childDepth));
          return inner.text;
        }
      : undefined,
  });
  let finishedOne = false;
  for (let item = loop.next(); item !== undefined; item = loop.next()) {
    spend(1, code.line);
    const inner = code.enter(frame);
    code.assign(inner, item);
    if (code.loopSlot !== undefined) inner.slots[code.loopSlot] = loop;
    const flow = code.body(inner, output);
    if (flow === "break") break;
    if (flow === "next") finishedOne = true;
  }
  // As in Jinja, `else` also runs if no item was processed completely.
  if (finishedOne || code.otherwise === undefined) return "next";
  return code.otherwise(frame, output);
}

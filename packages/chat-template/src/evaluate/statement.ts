import type { JinjaExpression, JinjaFilter, JinjaStatement } from "../syntax/ast.ts";
import { compileAssign } from "./assign.ts";
import { isEscaping, setEscaping } from "./autoescape.ts";
import { spend, spendCharacters } from "./budget.ts";
import type { Compile } from "./call.ts";
import { compileArguments, compileCall } from "./call.ts";
import { compileExpression, compileName, foldExpression } from "./expression.ts";
import { compileFilter } from "./filter.ts";
import { compileFor } from "./for.ts";
import type { Evaluate, Execute, Frame, Output, StatementPlace } from "./frame.ts";
import { compileEntry } from "./frame.ts";
import { compileMacro } from "./macro.ts";
import { analyzeStatements, JinjaScope, loadNames, storeNames } from "./scope.ts";
import { templateSyntaxError } from "../syntax/token.ts";
import { isTruthy } from "../values/template-iterate.ts";
import { escapeHtml } from "../values/template-markup.ts";
import { strOf } from "../values/template-text.ts";
import { Markup } from "../values/template-value.ts";

/** Compiles statements that run one after the other. */
export function compileStatements(
  statements: readonly JinjaStatement[],
  place: StatementPlace,
): Execute {
  const steps = statements.map((statement) => compileStatement(statement, place));
  const [only] = steps;
  if (only !== undefined && steps.length === 1) return only;
  const count = steps.length;
  return (frame, output) => {
    spend(count);
    for (let index = 0; index < count; index++) {
      const flow = (steps[index] as Execute)(frame, output);
      if (flow !== "next") return flow;
    }
    return "next";
  };
}

type Node<Type extends JinjaStatement["type"]> = Extract<JinjaStatement, { type: Type }>;

function compileStatement(statement: JinjaStatement, place: StatementPlace): Execute {
  switch (statement.type) {
    case "text":
      return printText(statement.text);
    case "output":
      return compileOutput(statement.value, place);
    case "set": {
      const value = compileExpression(statement.value, place);
      const assign = compileAssign(statement.target, place.scope);
      return (frame) => {
        assign(frame, value(frame));
        return "next";
      };
    }
    case "set-block":
      return compileSetBlock(statement, place);
    case "for":
      return compileFor(statement, place, compileStatements);
    case "if":
      return compileIf(statement, place);
    case "macro": {
      const make = compileMacro(statement, place.scope, compileStatements);
      const assign = compileAssign({ type: "name", name: statement.name ?? "" }, place.scope);
      return (frame) => {
        assign(frame, make(frame));
        return "next";
      };
    }
    case "call-block":
      return compileCallBlock(statement, place);
    case "filter-block":
      return compileFilterBlock(statement, place);
    case "with":
      return compileWith(statement, place);
    case "generation": {
      const make = compileMacro(statement.body, place.scope, compileStatements);
      return print((frame) => make(frame).call({ positional: [], named: new Map() }));
    }
    case "break":
    case "continue":
      if (!place.inLoop) {
        throw templateSyntaxError(statement.line, `'${statement.type}' outside of a loop`);
      }
      return () => statement.type;
  }
}

/** Compiles printing. Templates print constant texts most. */
function compileOutput(value: JinjaExpression, place: StatementPlace): Execute {
  const { escapes, isVolatile } = place.scope;
  const isPlain = value.type === "constant" && typeof value.value === "string";
  if (isPlain && !escapes && !isVolatile) return printText(value.value);
  return print(compilePrinted(value, place));
}

function printText(text: string): Execute {
  return (_frame, output) => {
    spendCharacters(text.length);
    output.text += text;
    return "next";
  };
}

function compilePrinted(expression: JinjaExpression, place: StatementPlace): Evaluate {
  const value = compileExpression(expression, place);
  const { scope } = place;
  const isKnown = !scope.isVolatile || foldExpression(expression, scope) !== undefined;
  if (isKnown) return scope.escapes ? (frame) => escapeHtml(value(frame)) : value;
  return (frame) => {
    const printed = value(frame);
    return isEscaping() ? escapeHtml(printed) : printed;
  };
}

function escapesHere({ escapes, isVolatile }: JinjaScope): boolean {
  return isVolatile ? isEscaping() : escapes;
}

function print(value: Evaluate): Execute {
  return (frame, output) => {
    const text = strOf(value(frame));
    spendCharacters(text.length);
    output.text += text;
    return "next";
  };
}

function compileIf(node: Node<"if">, place: StatementPlace): Execute {
  const inner = { ...place, soft: true };
  const branches = node.branches.map(({ test, body }) => ({
    test: compileExpression(test, inner),
    body: compileStatements(body, inner),
  }));
  const otherwise = compileStatements(node.otherwise, inner);
  const count = branches.length;
  return (frame, output) => {
    for (let index = 0; index < count; index++) {
      const branch = branches[index] as (typeof branches)[number];
      if (isTruthy(branch.test(frame))) return branch.body(frame, output);
    }
    return otherwise(frame, output);
  };
}

/** Cannot collide: names in a template have no spaces. */
const capturedName = "captured text";

/** Compiles a frame that captures its text instead of printing it. */
function compileCapture(
  body: readonly JinjaStatement[],
  filters: readonly JinjaFilter[],
  place: StatementPlace,
) {
  const scope = new JinjaScope(place.scope);
  analyzeStatements(scope, body);
  loadNames(scope, filters);
  const run = compileStatements(body, { scope, soft: false, inLoop: place.inLoop });
  scope.declare(capturedName);
  const slot = scope.find(capturedName)?.slot ?? 0;
  let filtered: Evaluate = compileName(capturedName, scope);
  const compile: Compile = (expression) => compileExpression(expression, { scope, soft: false });
  for (const filter of filters) {
    filtered = compileFilter(filtered, filter, { compile, soft: false });
  }
  const enter = compileEntry(scope);
  return (parent: Frame) => {
    const frame = enter(parent);
    const output: Output = { text: "" };
    const flow = run(frame, output);
    frame.slots[slot] = escapesHere(scope) ? new Markup(output.text) : output.text;
    return { flow, value: flow === "next" ? filtered(frame) : null };
  };
}

function compileSetBlock(node: Node<"set-block">, place: StatementPlace): Execute {
  const capture = compileCapture(node.body, node.filters, place);
  const assign = compileAssign(node.target, place.scope);
  return (frame) => {
    const { flow, value } = capture(frame);
    if (flow === "next") assign(frame, isEscaping() ? new Markup(strOf(value)) : value);
    return flow;
  };
}

function compileFilterBlock(node: Node<"filter-block">, place: StatementPlace): Execute {
  const capture = compileCapture(node.body, node.filters, place);
  return (frame, output) => {
    const { flow, value } = capture(frame);
    if (flow === "next") output.text += strOf(value);
    return flow;
  };
}

function compileCallBlock(node: Node<"call-block">, place: StatementPlace): Execute {
  const make = compileMacro(node.caller, place.scope, compileStatements);
  const compile: Compile = (expression) => compileExpression(expression, place);
  const given = compileArguments(node.args, compile);
  const call = compileCall(
    node.callee,
    (frame) => {
      const { positional, named } = given(frame);
      return { positional, named: new Map(named).set("caller", make(frame)) };
    },
    compile,
  );
  return print(call);
}

function compileWith(node: Node<"with">, place: StatementPlace): Execute {
  const scope = new JinjaScope(place.scope);
  const asked = node.autoescape;
  if (asked !== undefined) {
    const known = foldExpression(asked, scope);
    if (known === undefined) scope.isVolatile = true;
    else scope.escapes = isTruthy(known.value);
    loadNames(scope, asked);
  }
  for (const { target } of node.targets) storeNames(scope, target, { declared: true });
  analyzeStatements(scope, node.body);
  const run = compileStatements(node.body, { scope, soft: false, inLoop: place.inLoop });
  const decide = asked && compileExpression(asked, { scope, soft: false });
  const values = node.targets.map(({ target, value }) => ({
    value: compileExpression(value, place),
    assign: compileAssign(target, scope),
  }));
  const enter = compileEntry(scope);
  return (parent, output) => {
    const frame = enter(parent);
    for (const { value, assign } of values) assign(frame, value(parent));
    if (decide === undefined) return run(frame, output);
    const before = setEscaping(isTruthy(decide(frame)));
    const flow = run(frame, output);
    // As in Jinja, a `break` or `continue` from within skips restoring the state.
    if (flow === "next") setEscaping(before);
    return flow;
  };
}

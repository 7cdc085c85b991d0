import type { JinjaArguments, JinjaExpression } from "../syntax/ast.ts";
import type { Evaluate, Frame } from "./frame.ts";
import { callMethod } from "../values/template-attribute.ts";
import { typeError } from "../template-error.ts";
import { callValue } from "./template-function.ts";
import { toList } from "../values/template-iterate.ts";
import type { CallArguments, TemplateValue } from "../values/template-value.ts";
import { isDict, noArguments, textOf, typeName } from "../values/template-value.ts";

/** A function that compiles an expression to another one, which computes the expression. */
export type Compile = (expression: JinjaExpression) => Evaluate;

/** A function that computes a call's arguments. */
type EvaluateArguments = (frame: Frame) => CallArguments;

const noNames: ReadonlyMap<string, TemplateValue> = new Map();

/** Compiles a call's arguments to a function that computes them. */
export function compileArguments(args: JinjaArguments, compile: Compile): EvaluateArguments {
  const positional = args.positional.map((part) => compile(part));
  const named = args.named.map(([name, part]) => ({ name, value: compile(part) }));
  const rest = args.rest && compile(args.rest);
  const namedRest = args.namedRest && compile(args.namedRest);
  if (named.length === 0 && rest === undefined && namedRest === undefined) {
    if (positional.length === 0) return () => noArguments;
    const constants = constantsOf(args.positional);
    if (constants !== undefined) {
      const written = { positional: constants, named: noNames };
      return () => written;
    }
    const [only] = positional;
    if (only !== undefined && positional.length === 1) {
      return (frame) => ({ positional: [only(frame)], named: noNames });
    }
    return (frame) => ({ positional: positional.map((part) => part(frame)), named: noNames });
  }
  return (frame) => {
    const values = positional.map((part) => part(frame));
    if (rest !== undefined) values.push(...toList(rest(frame)));
    const members = new Map<string, TemplateValue>();
    for (const { name, value } of named) members.set(name, value(frame));
    if (namedRest !== undefined) addMembers(members, namedRest(frame));
    return { positional: values, named: members };
  };
}

/** The values of the expressions if all are literals. */
function constantsOf(parts: readonly JinjaExpression[]): readonly TemplateValue[] | undefined {
  const values: TemplateValue[] = [];
  for (const part of parts) {
    if (part.type !== "constant") return undefined;
    values.push(part.value);
  }
  return values;
}

function addMembers(members: Map<string, TemplateValue>, extra: TemplateValue): void {
  if (!isDict(extra)) {
    throw typeError(`argument after ** must be a mapping, not ${typeName(extra)}`);
  }
  for (const [key, value] of extra) {
    const name = textOf(key);
    if (name === undefined) throw typeError("keywords must be strings");
    if (members.has(name)) throw typeError(`got multiple values for keyword argument '${name}'`);
    members.set(name, value);
  }
}

/** Compiles a call. A method is called directly, without making a bound method first. */
export function compileCall(
  callee: JinjaExpression,
  args: EvaluateArguments,
  compile: Compile,
): Evaluate {
  if (callee.type === "attribute") {
    const object = compile(callee.object);
    return (frame) => callMethod(object(frame), callee.name, args(frame));
  }
  const value = compile(callee);
  return (frame) => callValue(value(frame), args(frame));
}

import type { JinjaMacro, JinjaParameter } from "../syntax/ast.ts";
import type { CompileStatements, Evaluate, Execute, Frame, Output } from "./frame.ts";
import { compileEntry } from "./frame.ts";
import { isEscaping } from "./autoescape.ts";
import { nest, spend } from "./budget.ts";
import { compileExpression } from "./expression.ts";
import { analyzeStatements, JinjaScope, loadNames, usesName } from "./scope.ts";
import { typeError } from "../template-error.ts";
import { reprOf } from "../values/template-text.ts";
import type { CallArguments, TemplateObject, TemplateValue } from "../values/template-value.ts";
import { Markup, Tuple, Undefined } from "../values/template-value.ts";

/** Special names that a macro's body may use beside its parameters. */
type SpecialName = "caller" | "kwargs" | "varargs";

interface MacroCode {
  readonly name: string | undefined;
  readonly parameters: readonly { readonly name: string; readonly slot: number }[];
  readonly specials: ReadonlyMap<SpecialName, number>;
  /** The default value of each parameter. For a parameter without one, it is undefined. */
  readonly fallbacks: readonly Evaluate[];
  readonly enter: (parent: Frame) => Frame;
  readonly body: Execute;
}

/** Compiles a macro. The returned function makes a macro that sees the frame of its definition. */
export function compileMacro(
  node: JinjaMacro,
  outer: JinjaScope,
  compileStatements: CompileStatements,
): (frame: Frame) => Macro {
  const scope = new JinjaScope(outer);
  for (const { name, fallback } of node.parameters) {
    scope.declare(name);
    loadNames(scope, fallback);
  }
  analyzeStatements(scope, node.body);
  const specials = declareSpecials(node, scope);
  const body = compileStatements(node.body, { scope, soft: false, inLoop: false });
  const code: MacroCode = {
    name: node.name,
    parameters: node.parameters.map(({ name }) => ({ name, slot: slotOf(scope, name) })),
    specials,
    fallbacks: node.parameters.map((parameter) => compileFallback(parameter, scope)),
    enter: compileEntry(scope),
    body,
  };
  return (frame) => new Macro(code, frame);
}

function declareSpecials(node: JinjaMacro, scope: JinjaScope): ReadonlyMap<SpecialName, number> {
  const specials = new Map<SpecialName, number>();
  for (const name of ["caller", "kwargs", "varargs"] as const) {
    const isParameter = node.parameters.some((parameter) => parameter.name === name);
    if (isParameter || !usesName(node.body, name)) continue;
    scope.declare(name);
    specials.set(name, slotOf(scope, name));
  }
  return specials;
}

function slotOf(scope: JinjaScope, name: string): number {
  return scope.find(name)?.slot ?? 0;
}

function compileFallback({ name, fallback }: JinjaParameter, scope: JinjaScope): Evaluate {
  if (fallback !== undefined) return compileExpression(fallback, { scope, soft: false });
  const absent = new Undefined({ hint: `parameter ${reprOf(name)} was not provided`, name });
  return () => absent;
}

/** A macro, or the body of a call block as the called macro sees it. */
class Macro implements TemplateObject {
  readonly pythonType = "Macro";
  readonly qualifiedType = "jinja2.runtime.Macro";
  readonly #code: MacroCode;
  readonly #frame: Frame;

  constructor(code: MacroCode, frame: Frame) {
    this.#code = code;
    this.#frame = frame;
  }

  /**
   * Calls the macro, and returns its text.
   *
   * @throws TemplateError `TypeError` for unexpected arguments.
   */
  call({ positional, named }: CallArguments): TemplateValue {
    const { parameters, fallbacks, enter, body } = this.#code;
    const frame = enter(this.#frame);
    const unused = new Map(named);
    const missing: number[] = [];
    parameters.forEach(({ name, slot }, index) => {
      const value = index < positional.length ? positional[index] : unused.get(name);
      if (index >= positional.length) unused.delete(name);
      frame.slots[slot] = value;
      if (value === undefined) missing.push(index);
    });
    this.#takeSpecials(frame, positional, unused);
    for (const index of missing) {
      const slot = parameters[index]?.slot ?? 0;
      frame.slots[slot] = (fallbacks[index] as Evaluate)(frame);
    }
    const output: Output = { text: "" };
    spend(1);
    nest(() => body(frame, output));
    return isEscaping() ? new Markup(output.text) : output.text;
  }

  attribute(name: string): TemplateValue | undefined {
    const { specials, parameters } = this.#code;
    switch (name) {
      case "name":
        return this.#code.name ?? null;
      case "arguments":
        return new Tuple(parameters.map((parameter) => parameter.name));
      case "caller":
        return specials.has("caller");
      case "catch_kwargs":
        return specials.has("kwargs");
      case "catch_varargs":
        return specials.has("varargs");
      default:
        return undefined;
    }
  }

  repr(): string {
    return `<Macro ${this.#code.name === undefined ? "anonymous" : reprOf(this.#code.name)}>`;
  }

  #takeSpecials(
    frame: Frame,
    positional: readonly TemplateValue[],
    unused: Map<string, TemplateValue>,
  ): void {
    const { parameters, specials, name } = this.#code;
    const caller = specials.get("caller");
    if (caller !== undefined) {
      frame.slots[caller] =
        unused.get("caller") ?? new Undefined({ hint: "No caller defined", name: "caller" });
      unused.delete("caller");
    }
    const kwargs = specials.get("kwargs");
    const [unknown] = unused.keys();
    if (kwargs !== undefined) {
      frame.slots[kwargs] = unused;
    } else if (unknown !== undefined) {
      throw typeError(`macro ${reprOf(name ?? null)} takes no keyword argument ${reprOf(unknown)}`);
    }
    const varargs = specials.get("varargs");
    if (varargs !== undefined) {
      frame.slots[varargs] = new Tuple(positional.slice(parameters.length));
    } else if (positional.length > parameters.length) {
      throw typeError(
        `macro ${reprOf(name ?? null)} takes not more than ${parameters.length} argument(s)`,
      );
    }
  }
}

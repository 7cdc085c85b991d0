import type { ArithmeticOperator } from "../values/template-arithmetic.ts";
import type { OrderOperator } from "../values/template-compare.ts";

/** An operator of a comparison. */
export type CompareOperator = OrderOperator | "==" | "!=" | "in" | "not in";

/** The arguments of a call, filter or test, as written. */
export interface JinjaArguments {
  readonly positional: readonly JinjaExpression[];
  readonly named: readonly (readonly [name: string, value: JinjaExpression])[];
  /** `*expression` */
  readonly rest: JinjaExpression | undefined;
  /** `**expression` */
  readonly namedRest: JinjaExpression | undefined;
}

/** A filter's or test's name and arguments. */
export interface JinjaFilter {
  readonly name: string;
  readonly args: JinjaArguments;
  readonly line: number;
}

/** An expression; `line` is 1-based. */
export type JinjaExpression =
  | { readonly type: "constant"; readonly value: null | boolean | bigint | number | string }
  | { readonly type: "name"; readonly name: string }
  | { readonly type: "tuple" | "list"; readonly items: readonly JinjaExpression[] }
  | {
      readonly type: "dict";
      readonly entries: readonly (readonly [JinjaExpression, JinjaExpression])[];
    }
  | {
      readonly type: "arithmetic";
      readonly operator: ArithmeticOperator;
      readonly left: JinjaExpression;
      readonly right: JinjaExpression;
    }
  | {
      readonly type: "and" | "or";
      readonly left: JinjaExpression;
      readonly right: JinjaExpression;
    }
  | { readonly type: "not"; readonly operand: JinjaExpression }
  | { readonly type: "sign"; readonly operator: "+" | "-"; readonly operand: JinjaExpression }
  | { readonly type: "concat"; readonly parts: readonly JinjaExpression[] }
  | {
      readonly type: "compare";
      readonly first: JinjaExpression;
      readonly rest: readonly {
        readonly operator: CompareOperator;
        readonly operand: JinjaExpression;
      }[];
    }
  | {
      readonly type: "conditional";
      readonly test: JinjaExpression;
      readonly value: JinjaExpression;
      readonly otherwise: JinjaExpression | undefined;
      readonly line: number;
    }
  | { readonly type: "filter"; readonly operand: JinjaExpression; readonly filter: JinjaFilter }
  | { readonly type: "test"; readonly operand: JinjaExpression; readonly test: JinjaFilter }
  | { readonly type: "attribute"; readonly object: JinjaExpression; readonly name: string }
  | { readonly type: "item"; readonly object: JinjaExpression; readonly key: JinjaExpression }
  | {
      readonly type: "slice";
      readonly object: JinjaExpression;
      readonly start: JinjaExpression | undefined;
      readonly stop: JinjaExpression | undefined;
      readonly step: JinjaExpression | undefined;
    }
  | { readonly type: "call"; readonly callee: JinjaExpression; readonly args: JinjaArguments };

/** The target of `set` and `for`. */
export type JinjaTarget =
  | { readonly type: "name"; readonly name: string }
  | { readonly type: "namespace"; readonly name: string; readonly attribute: string }
  | { readonly type: "tuple"; readonly items: readonly JinjaTarget[] };

/** A macro's or call block's parameter. */
export interface JinjaParameter {
  readonly name: string;
  readonly fallback: JinjaExpression | undefined;
}

/** A `for` loop. */
export interface JinjaFor {
  readonly type: "for";
  readonly target: JinjaTarget;
  readonly iterable: JinjaExpression;
  /** The condition on items. */
  readonly filter: JinjaExpression | undefined;
  readonly recursive: boolean;
  readonly line: number;
  readonly body: readonly JinjaStatement[];
  /** The statements that run without items. */
  readonly otherwise: readonly JinjaStatement[];
}

/** A macro; the body of a call block is one without a name. */
export interface JinjaMacro {
  readonly type: "macro";
  readonly name: string | undefined;
  readonly parameters: readonly JinjaParameter[];
  readonly body: readonly JinjaStatement[];
  readonly line: number;
}

/** A statement. */
export type JinjaStatement =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "output"; readonly value: JinjaExpression }
  | { readonly type: "set"; readonly target: JinjaTarget; readonly value: JinjaExpression }
  | {
      readonly type: "set-block";
      readonly target: JinjaTarget;
      readonly filters: readonly JinjaFilter[];
      readonly body: readonly JinjaStatement[];
    }
  | JinjaFor
  | {
      readonly type: "if";
      readonly branches: readonly {
        readonly test: JinjaExpression;
        readonly body: readonly JinjaStatement[];
      }[];
      readonly otherwise: readonly JinjaStatement[];
    }
  | JinjaMacro
  | {
      readonly type: "call-block";
      readonly callee: JinjaExpression;
      readonly args: JinjaArguments;
      readonly caller: JinjaMacro;
    }
  | {
      readonly type: "filter-block";
      readonly filters: readonly JinjaFilter[];
      readonly body: readonly JinjaStatement[];
    }
  | {
      readonly type: "with";
      /** Present if the block changes escaping. */
      readonly autoescape?: JinjaExpression;
      readonly targets: readonly {
        readonly target: JinjaTarget;
        readonly value: JinjaExpression;
      }[];
      readonly body: readonly JinjaStatement[];
    }
  /** A `generation` block of the transformers library, which marks the assistant's text: its body, in a macro. */
  | { readonly type: "generation"; readonly body: JinjaMacro }
  | { readonly type: "break" | "continue"; readonly line: number };

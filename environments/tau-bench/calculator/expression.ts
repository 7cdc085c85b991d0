/** An arithmetic expression as CPython's parser reads it. */
export type Expression =
  | { readonly type: "int"; readonly value: bigint }
  | { readonly type: "float"; readonly value: number }
  | { readonly type: "tuple" }
  | { readonly type: "ellipsis" }
  /** Operators of one rank, applied from the left. */
  | { readonly type: "chain"; readonly first: Expression; readonly rest: readonly ChainLink[] }
  /** Powers, applied from the right; a power's signs are applied to the power, not to its base. */
  | { readonly type: "power"; readonly factors: readonly Factor[] }
  /** Calls, which always fail, but only after their arguments are evaluated. */
  | { readonly type: "call"; readonly called: Expression; readonly calls: readonly Call[] };

/** One operator and its right operand. */
export interface ChainLink {
  readonly operator: BinaryOperator;
  readonly operand: Expression;
}

/** Binary operators of one rank are applied from the left, except `**`. */
export type BinaryOperator = "+" | "-" | "*" | "/" | "//" | "**";

/** Signs and their operand. */
export interface Factor {
  /** The signs in the order of the text. */
  readonly signs: readonly ("+" | "-")[];
  readonly base: Expression;
}

/** The arguments of one call: at most one, since there are no commas. */
export type Call =
  | { readonly type: "empty" }
  | { readonly type: "plain" | "star" | "double-star"; readonly argument: Expression };

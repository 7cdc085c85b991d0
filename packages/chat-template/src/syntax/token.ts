import { UsageError } from "../../../python-values/src/support/index.ts";

/** A piece of a template's source. */
export type JinjaToken =
  | { readonly type: "data" | "name" | "string"; readonly value: string; readonly line: number }
  | { readonly type: "operator"; readonly value: string; readonly line: number }
  | { readonly type: "integer"; readonly value: bigint; readonly line: number }
  | { readonly type: "float"; readonly value: number; readonly line: number }
  | {
      readonly type: "variable-begin" | "variable-end" | "block-begin" | "block-end" | "end";
      readonly value: "";
      readonly line: number;
    };

/** The error for an invalid template. */
export function templateSyntaxError(line: number, problem: string): UsageError {
  return new UsageError(`Cannot compile the chat template: line ${line}: ${problem}`);
}

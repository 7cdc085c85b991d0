import { countOf } from "../../text/count-of.ts";
import type { Cause } from "../diagnosis.ts";
import type { InputProblem, InputProblemKind } from "../input/trainer-row.ts";
import type { Evidence } from "./evidence.ts";

/** Finds rows and values that are missing or wrong. */
export function findIncomplete({ problems }: Pick<Evidence, "problems">): readonly Cause[] {
  if (problems.length === 0) return [];
  const text = `Not everything could be compared: ${problems.map(describeProblem).join("; ")}.`;
  return [{ name: "incomplete", text, strength: 0, isFinding: true }];
}

const words: Readonly<Record<InputProblemKind, string>> = {
  "not-json": "not JSON",
  shape: "without a required member",
  "unknown-row": "of rows that the run does not have",
  "doubled-row": "of a row that the file has already",
  "wrong-length": "with another number of logprobs than the row has tokens",
  "missing-row": "of the run without a line in the file",
  "missing-value": "with trained tokens that have no value",
  "not-finite": "with values that are infinite or not a number",
  "above-zero": "with values above 0 (negative logprobs were expected)",
  "bad-routes": "with routes that cannot be compared",
  "missing-routes": "with tokens that have no routes, although other tokens of the file have some",
};

const lineKinds: ReadonlySet<InputProblemKind> = new Set([
  "not-json",
  "shape",
  "unknown-row",
  "doubled-row",
]);

/** Describes a problem with its count, such as `3 rows of the run are not in the file`. */
export function describeProblem({ kind, rowCount, tokenCount, examples }: InputProblem): string {
  const tokens = tokenCount === undefined ? "" : ` (${countOf(tokenCount, "token")})`;
  const noun = lineKinds.has(kind) ? "line" : "row";
  return `${countOf(rowCount, noun)} ${words[kind]}${tokens}, such as ${examples[0]}`;
}

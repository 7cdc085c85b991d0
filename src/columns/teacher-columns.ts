import { isSampledLogprob } from "../values/logprob-range.ts";
import { checkRagged } from "./check-ragged.ts";
import type { ColumnPart } from "./column-part.ts";
import type { ColumnProblem } from "./column-problem.ts";

/**
 * The name of a column that a teacher computes for a finished row. Rows of the column belong to the tokens from the
 * prompt's end to the row's end, environment tokens included.
 *
 * - `teacherLogprobs`: the token's logprob after the tokens before it, a 32-bit float.
 * - `teacherTop`: the most probable ids in the token's place with their logprobs, best first, laid out as `topLogprobs`.
 *   They may lack the token itself.
 */
export type TeacherColumnName = "teacherLogprobs" | "teacherTop";

/** The columns of a teacher for one row. Empty if the row has no tokens after its prompt. */
export type TeacherParts = Readonly<Partial<Record<TeacherColumnName, ColumnPart>>>;

/** Encodes logprobs as 32-bit floats, little-endian. */
export function encodeLogprobs(logprobs: readonly number[]): Uint8Array {
  return new Uint8Array(Float32Array.from(logprobs).buffer);
}

/** Decodes 32-bit floats. A copy, because they begin at a multiple of four. */
export function decodeLogprobs(bytes: Uint8Array): Float32Array {
  return new Float32Array(new Uint8Array(bytes).buffer);
}

/** Finds the first value of a teacher's column that no teacher returns. */
export function findTeacherProblem(
  name: TeacherColumnName,
  { rows, bytes }: { readonly rows: number; readonly bytes: Uint8Array },
  { topCount = 0, vocabularySize }: { topCount?: number | undefined; vocabularySize?: number },
): ColumnProblem | undefined {
  if (name === "teacherTop") {
    const specs = { topLogprobs: { count: topCount } };
    const wanted = { specs, knownRows: 0, promptLength: 0, sampledIds: [], vocabularySize };
    const check = checkRagged("topLogprobs", { rows, bytes, start: 0 }, wanted);
    for (let step = check.next(); ; step = check.next()) if (step.done === true) return step.value;
  }
  if (bytes.length !== rows * 4) {
    return { problem: `${name} has ${bytes.length} bytes`, expected: `${rows * 4}, 4 a token` };
  }
  const logprobs = decodeLogprobs(bytes);
  const wrong = logprobs.findIndex((logprob) => !isSampledLogprob(logprob));
  if (wrong < 0) return undefined;
  const problem = `row ${wrong} of ${name} has the logprob ${logprobs[wrong]}`;
  return { problem, expected: "a logarithm, at most 0" };
}

import type { Sample } from "../trajectory/sample.ts";

/** The members of a row that contain its first prompt. */
type PromptedRow = Pick<Sample, "tokenIds" | "promptLength">;

/** True if two rows begin with the same first prompt. */
export function hasSamePrompt(row: PromptedRow, { tokenIds, promptLength }: PromptedRow): boolean {
  if (row.promptLength !== promptLength) return false;
  for (let index = 0; index < promptLength; index++) {
    if (row.tokenIds[index] !== tokenIds[index]) return false;
  }
  return true;
}

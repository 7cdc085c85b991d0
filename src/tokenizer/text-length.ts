import { RolloutError } from "../errors.ts";

/**
 * Longest text that is encoded at once, in UTF-16 units. Work grows faster than some texts (a run of
 * spaces is gone through again and again), and from ten million on the native library ends the process.
 */
export const maxTextLength = 4_000_000;

/** The code of a text that is too long to be encoded. */
export const textTooLong = "internal/text-too-long";

/** @throws RolloutError `internal/text-too-long` where the text is too long to be encoded. */
export function assertTextLength(text: string): void {
  if (text.length <= maxTextLength) return;
  throw new RolloutError(
    textTooLong,
    `Cannot encode a text of ${text.length} characters: expected at most ${maxTextLength}`,
  );
}

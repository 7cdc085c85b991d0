import { RolloutError } from "../errors.ts";

/**
 * Maximum length of a text to encode at once, in UTF-16 units. The work for some texts grows faster
 * than their length, for example for a run of spaces. From ten million units on, the native library
 * ends the process.
 */
export const maxTextLength = 4_000_000;

/** The code of the error for a text that is too long. */
export const textTooLong = "internal/text-too-long";

/**
 * Refuses a text that is too long.
 *
 * @throws RolloutError `internal/text-too-long` if the text is too long to encode.
 */
export function assertTextLength(text: string): void {
  if (text.length <= maxTextLength) return;
  throw new RolloutError(
    textTooLong,
    `Cannot encode a text of ${text.length} characters: expected at most ${maxTextLength}`,
  );
}

import { RolloutError } from "../errors.ts";
import { pythonStrip } from "../../packages/python-values/src/text/strip.ts";

/**
 * Normalises a label at the start of a line: other letter case, bold, a heading mark, or a space
 * before its colon.
 *
 * @param label - The label with its colon.
 */
export function plainLabel(text: string, label: string): string {
  const words = label.slice(0, -1);
  const spelled = new RegExp(
    `^[ \\t>#]{0,20}([*_]{0,3})${words}[ \\t]{0,20}(?:\\1[ \\t]{0,20}:|:[ \\t]{0,20}\\1)`,
    "gim",
  );
  return text.replace(spelled, label);
}

/**
 * Returns the text after a label, without surrounding white space. If the label may repeat, other
 * spellings count too and the last one is used.
 *
 * @throws RolloutError `user/bad-reply` if the label is missing, or occurs more than once and may
 *   not.
 */
export function afterLabel(
  text: string,
  label: string,
  { mayRepeat }: { mayRepeat: boolean },
): string {
  const parts = (mayRepeat ? plainLabel(text, label) : text).split(label);
  const last = parts.at(-1);
  if (last === undefined || parts.length < 2 || (parts.length > 2 && !mayRepeat)) {
    throw new RolloutError(
      "user/bad-reply",
      `Cannot read the user's line: "${label}" occurs ${parts.length - 1} times in ` +
        `${JSON.stringify(text.slice(0, 200))}, expected once`,
      { retryable: true },
    );
  }
  return pythonStrip(last);
}

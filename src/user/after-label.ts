import { RolloutError } from "../errors.ts";
import { pythonStrip } from "../python/text/strip.ts";

/**
 * The text after a label, without white space around it.
 *
 * @throws RolloutError `user/bad-reply` where the label is absent, or occurs twice and may not.
 */
export function afterLabel(
  text: string,
  label: string,
  { mayRepeat }: { mayRepeat: boolean },
): string {
  const parts = text.split(label);
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

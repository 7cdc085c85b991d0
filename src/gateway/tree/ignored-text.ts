import { UsageError, describeError } from "../../errors.ts";
import {
  compilePattern,
  removeAll,
} from "../../../packages/tool-parsers/src/pattern/compile-pattern.ts";
import {
  StepBudget,
  StepLimitError,
} from "../../../packages/tool-parsers/src/pattern/step-budget.ts";
import { ClientError } from "../client-error.ts";

/** Text that is removed from messages before they are compared. */
export interface IgnoredText {
  /**
   * Returns the text without the matches of the pattern.
   *
   * @throws ClientError `invalid` if the pattern needs too many steps for this text.
   */
  readonly remove: (text: string) => string;
}

/** The limit of steps for a text: a constant plus an amount per character. */
const baseSteps = 1_000_000;
const stepsPerCharacter = 100;

/**
 * Compiles a pattern of the settings for use on clients' text. Matching takes linear time.
 *
 * @throws UsageError for back-references and the flag `v`, which are not possible in linear time.
 */
export function ignoredText({ source, flags }: RegExp): IgnoredText {
  const pattern = compile(source, flags);
  return {
    remove(text) {
      try {
        const budget = new StepBudget(baseSteps + stepsPerCharacter * text.length);
        return removeAll(pattern, text, budget);
      } catch (error) {
        if (!(error instanceof StepLimitError)) throw error;
        throw new ClientError(
          "invalid",
          `Cannot compare a message of ${text.length} characters: the gateway's setting ignore, ` +
            `/${source}/, is too slow for it (${error.message}), expected a simpler pattern there`,
          { cause: error },
        );
      }
    },
  };
}

function compile(source: string, flags: string) {
  try {
    if (flags.includes("v")) throw new UsageError("it has the flag v");
    return compilePattern(source, {
      ignoresCase: flags.includes("i"),
      isMultiline: flags.includes("m"),
      isDotAll: flags.includes("s"),
    });
  } catch (error) {
    throw new UsageError(`Cannot ignore what /${source}/ matches: ${describeError(error)}`, {
      cause: error,
    });
  }
}

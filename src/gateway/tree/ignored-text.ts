import { UsageError, describeError } from "../../errors.ts";
import { compilePattern, removeAll } from "../../pattern/compile-pattern.ts";
import { StepBudget, StepLimitError } from "../../pattern/step-budget.ts";
import { ClientError } from "../client-error.ts";

/** A text that is taken out of messages before they are compared. */
export interface IgnoredText {
  /** @throws ClientError `invalid` where it takes too many steps for this text. */
  readonly remove: (text: string) => string;
}

/** Steps that a text costs at most, and those of each of its characters. */
const baseSteps = 1_000_000;
const stepsPerCharacter = 100;

/**
 * Reads a pattern of the gateway's settings, which is run on what clients write: in linear time.
 *
 * @throws UsageError for back-references and the flag `v`, which linear time does not allow.
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

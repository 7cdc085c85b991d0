import { UsageError, describeError } from "../errors.ts";
import type { TextActionPrompt, TextActionPrompts } from "./text-action-prompt.ts";
import { readTextFile } from "../text/decode-text.ts";
import { parseStrictJson } from "../json/strict-json.ts";

/** The bundle's placeholder for the policy text, at the start of the prompt. */
const policyPlace = "WIKI \u00e9";

/** The bundle's placeholder for the tools. */
const toolsPlace =
  '[{"type": "function", "function": {"name": "t", "description": "d \\u00e9", "parameters": {}}}]';

/**
 * Reads the prompts of τ-bench's `act` and `react` agents from a bundle's `agent-prompts.json`. The
 * file has complete system prompts with placeholders for the policy text and the tools.
 *
 * @throws UsageError that names the file and the member if a prompt cannot be used.
 */
export async function readTextActionPrompts(file: string): Promise<TextActionPrompts> {
  let prompts: unknown;
  try {
    prompts = parseStrictJson(await readTextFile(file, { mark: "drop" }));
  } catch (error) {
    throw new UsageError(`Cannot read the agent prompts ${file}: ${describeError(error)}`, {
      cause: error,
    });
  }
  const { act, react } = (prompts ?? {}) as Readonly<Record<string, unknown>>;
  return { act: splitPrompt(act, `${file}: act`), react: splitPrompt(react, `${file}: react`) };
}

function splitPrompt(text: unknown, place: string): TextActionPrompt {
  if (typeof text !== "string") throw new UsageError(`Cannot read ${place}: expected text`);
  const [beforeTools, afterTools, ...more] = text.slice(policyPlace.length).split(toolsPlace);
  if (!text.startsWith(policyPlace) || afterTools === undefined || more.length > 0) {
    throw new UsageError(
      `Cannot read ${place}: expected it to start with the placeholder of the policy, "${policyPlace}", ` +
        `and to contain the placeholder of the tools once, ${toolsPlace}`,
    );
  }
  return { beforeTools: beforeTools ?? "", afterTools };
}

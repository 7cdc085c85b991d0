import { UsageError, describeError } from "../errors.ts";
import type { TextActionPrompt, TextActionPrompts } from "./text-action-prompt.ts";
import { readTextFile } from "../text/decode-text.ts";
import { parseStrictJson } from "../json/strict-json.ts";

/** How the bundle writes the place of the policy text, at the prompt's very beginning. */
const policyPlace = "WIKI \u00e9";

/** How the bundle writes the place of the tools. */
const toolsPlace =
  '[{"type": "function", "function": {"name": "t", "description": "d \\u00e9", "parameters": {}}}]';

/**
 * Reads the prompts of τ-bench's `act` and `react` agents from a bundle's `agent-prompts.json`: the
 * whole system prompt of each, made for a stand-in policy and a stand-in tool.
 *
 * @throws UsageError naming the file and the place where it cannot be used.
 */
export async function readTextActionPrompts(
  file: string,
  { signal }: { signal?: AbortSignal } = {},
): Promise<TextActionPrompts> {
  let prompts: unknown;
  try {
    prompts = parseStrictJson(await readTextFile(file, { mark: "drop", signal }));
  } catch (error) {
    signal?.throwIfAborted();
    throw new UsageError(`Cannot read the agent prompts ${file}: ${describeError(error)}`, {
      cause: error,
    });
  }
  const { act, react } = (prompts ?? {}) as Readonly<Record<string, unknown>>;
  return { act: splitPrompt(act, `${file}: act`), react: splitPrompt(react, `${file}: react`) };
}

function splitPrompt(text: unknown, place: string): TextActionPrompt {
  if (typeof text !== "string") throw new UsageError(`Cannot read ${place}: expected a text`);
  const [beforeTools, afterTools, ...more] = text.slice(policyPlace.length).split(toolsPlace);
  if (!text.startsWith(policyPlace) || afterTools === undefined || more.length > 0) {
    throw new UsageError(
      `Cannot read ${place}: expected it to begin with "${policyPlace}", where the policy goes, ` +
        `and to hold ${toolsPlace} once, where the tools go`,
    );
  }
  return { beforeTools: beforeTools ?? "", afterTools };
}

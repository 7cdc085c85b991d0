import { respondAction } from "./read-text-action.ts";
import type { TextActionPrompt, TextActionPrompts } from "./text-action-prompt.ts";

/**
 * Prompts for any environment, not from a benchmark. To compare with published numbers, use the
 * benchmark's own prompts; see `readTextActionPrompts()`.
 */
export const ownTextActionPrompts: TextActionPrompts = {
  act: prompt([]),
  react: prompt(["Thought:", "<one line: what you know by now, and what therefore comes next>"]),
};

function prompt(thought: readonly string[]): TextActionPrompt {
  const example = thought.length === 0 ? [] : ["Thought:", "I have to read the order first."];
  return {
    beforeTools: "\n\n# Tools\n\n",
    afterTools: [
      "\n\n# How to act\n",
      "Each of your turns performs exactly one action and has exactly this form:\n",
      ...thought,
      "Action:",
      '{"name": "<name of the action>", "arguments": {<its arguments>}}\n',
      "After Action: stands one JSON object and nothing else: no code fence, no further text.",
      "The name is that of a tool above; the tool's result comes back as the next message, after " +
        `the words "API output:". To talk to the user, the name is "${respondAction}", and its ` +
        'one argument "content" is what you say.',
      "Use only values that you were given or have read, never invented ones.\n",
      "For example, to call a tool:\n",
      ...example,
      "Action:",
      '{"name": "get_order", "arguments": {"order_id": "17"}}\n',
      "And to talk to the user:\n",
      ...(thought.length === 0 ? [] : ["Thought:", "The order is found, so I can answer."]),
      "Action:",
      `{"name": "${respondAction}", "arguments": {"content": "Your order was sent on Monday."}}\n`,
    ].join("\n"),
  };
}

import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import type { BoundTemplate } from "./bound-template.ts";
import { tryRender } from "./bound-template.ts";

/** A conversation up to a prompt, the turn that was sampled on it, and the messages after it. */
interface ContinuedConversation {
  readonly before: readonly PyDict[];
  /** The sampled turn and the messages that answer it. */
  readonly turn: readonly PyDict[];
  readonly tools: readonly PyValue[] | null;
  /** Words that stand for the policy's texts in `before` and in `turn`. */
  readonly marks: { readonly before: readonly string[]; readonly turn: readonly string[] };
}

/**
 * True if the prompt after a turn still shows the earlier prompt's content in the same place, and the turn itself.
 * Compares text, so different token boundaries do not count.
 *
 * @returns `undefined` if the template refuses one of the two.
 */
export function continues(
  template: BoundTemplate,
  { before, turn, tools, marks }: ContinuedConversation,
): boolean | undefined {
  const prompted = tryRender(template, { messages: before, tools, addGenerationPrompt: true });
  const messages = [...before, ...turn];
  const next = tryRender(template, { messages, tools, addGenerationPrompt: true });
  if (prompted === undefined || next === undefined) return undefined;
  const seen = [...marks.before.filter((word) => prompted.includes(word)), ...marks.turn];
  if (!seen.every((word) => next.includes(word))) return false;
  // The policy continued from a generation prompt that opens a reasoning block, so the block is part of the prompt.
  if (opensReasoning(prompted)) return next.startsWith(prompted);
  const bare = tryRender(template, { messages: before, tools, addGenerationPrompt: false });
  return next.startsWith(commonStart(prompted, bare ?? prompted));
}

/** The length of the longest opening tag of any family. */
const longestTag = 64;

/** True if a prompt ends just inside a reasoning block. */
export function opensReasoning(prompt: string): boolean {
  return /[<[◁](?!\/)(?![^<>[\]◁▷]*end)[^<>[\]◁▷]*(?:think|reason|thought)[^<>[\]◁▷]*[>\]▷]$/iu.test(
    prompt.trimEnd().slice(-longestTag),
  );
}

function commonStart(left: string, right: string): string {
  let length = 0;
  while (length < left.length && left[length] === right[length]) length++;
  return left.slice(0, length);
}

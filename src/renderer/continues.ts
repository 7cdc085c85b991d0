import type { PyDict, PyValue } from "../python/value.ts";
import type { BoundTemplate } from "./bound-template.ts";
import { tryRender } from "./bound-template.ts";

/** A conversation up to a prompt, the turn that was sampled on it, and what followed. */
interface ContinuedConversation {
  readonly before: readonly PyDict[];
  /** The sampled turn and the messages that answer it. */
  readonly turn: readonly PyDict[];
  readonly tools: readonly PyValue[] | null;
  /** Words that stand for what the policy said in `before` and in `turn`. */
  readonly marks: { readonly before: readonly string[]; readonly turn: readonly string[] };
}

/**
 * Whether the prompt after a turn still shows all that the prompt before it showed, in the same
 * place, and the turn itself. Works on text, so that other token boundaries are no difference.
 *
 * @returns `undefined` where the template refuses one of the two.
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
  // A generation prompt that opens a block is part of what the policy went on from.
  if (opensReasoning(prompted)) return next.startsWith(prompted);
  const bare = tryRender(template, { messages: before, tools, addGenerationPrompt: false });
  return next.startsWith(commonStart(prompted, bare ?? prompted));
}

/** No family's opening tag is longer. */
const longestTag = 64;

/** Whether a prompt ends just inside a reasoning block. */
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

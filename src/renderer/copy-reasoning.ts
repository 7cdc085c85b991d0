import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";

/** The field names of a message's reasoning, by priority. */
export const reasoningFields = ["reasoning_content", "thinking", "reasoning"] as const;

/**
 * Returns the messages with their reasoning under the names that templates read: `reasoning_content` always, and
 * `thinking` unless the message has it already.
 *
 * **Source:** behaviour of transformers since 5.21, `src/transformers/utils/chat_template_utils.py`.
 */
export function copyReasoning(messages: readonly PyDict[]): readonly PyDict[] {
  for (const message of messages) {
    if (reasoningOf(message) !== undefined) return messages.map(copyOne);
  }
  return messages;
}

function copyOne(message: PyDict): PyDict {
  const reasoning = reasoningOf(message);
  if (reasoning === undefined) return message;
  return new Map([["thinking", reasoning], ...message, ["reasoning_content", reasoning]]);
}

function reasoningOf(message: PyDict): PyValue | undefined {
  for (const field of reasoningFields) {
    const value = message.get(field);
    if (value !== undefined && value !== null) return value;
  }
  return undefined;
}

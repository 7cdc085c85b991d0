/**
 * Descriptions of the causes for which a conversation through the gateway starts a new root, by the
 * names of causes in a run.
 */
const causes: Readonly<Record<string, string>> = {
  first: "the session's first request",
  "new-conversation": "a new conversation without sampled turns, such as a sub-agent or a title",
  "repeated-prompt": "the prompt of an earlier root again: a second attempt",
  "tools-changed": "the same conversation with other tools",
  "history-edited": "the client changed a sampled turn, or a message before it",
  "moved-turn": "a turn that was sampled before, after another history: usually compaction",
  "foreign-assistant": "the client brought an assistant's turn that was not sampled here",
  "no-environment": "the request ended with the policy's own turn, without an answer",
  "delta-unsupported": "the chat template cannot continue after the turn before",
  "rewritten-by-template": "the chat template renders the earlier turns differently now",
};

/** Describes the cause of a root. Returns an unknown cause unchanged. */
export function causeWords(cause: string): string {
  return causes[cause] ?? cause;
}

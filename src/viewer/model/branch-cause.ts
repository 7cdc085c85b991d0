/**
 * Descriptions of the causes for which a conversation through the gateway starts a new root, by the
 * names of causes in a run.
 */
const causes: Readonly<Record<string, string>> = {
  first: "the session's first request",
  "new-conversation":
    "a conversation of its own, in which nothing was sampled before: a sub-agent, a title",
  "repeated-prompt": "the prompt of an earlier root again: a second attempt",
  "tools-changed": "the same conversation with other tools",
  "history-edited": "the client changed what was sampled before, or what it answered",
  "moved-turn": "a turn that was sampled before, behind another history: compaction, as a rule",
  "foreign-assistant": "the client brought an assistant's turn that was not sampled here",
  "no-environment": "the request ended with the policy's own turn: nothing answers it",
  "delta-unsupported": "the chat template cannot go on from the turn before",
  "rewritten-by-template": "the chat template shows the earlier turns otherwise by now",
};

/** Describes the cause of a root. Returns an unknown cause unchanged. */
export function causeWords(cause: string): string {
  return causes[cause] ?? cause;
}

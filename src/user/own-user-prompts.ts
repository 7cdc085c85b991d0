import { STOP_MARKER } from "./stop-marker.ts";
import type { InstructedPrompt, UserPrompts } from "./user-prompts.ts";

/**
 * Prompts for any environment, not from a benchmark. To compare with published numbers, use the
 * benchmark's own prompts; see `readUserPrompts()`.
 */
export const ownUserPrompts: UserPrompts = {
  llm: instructed([
    "Write the customer's next message, one short message at a time, and nothing else.",
    "When everything the customer wants is settled, or the agent has clearly refused it for " +
      `good, write ${STOP_MARKER} alone instead of a message.`,
  ]),
  react: instructed([
    "Answer in exactly two parts: a line that begins with Thought: and says what the customer" +
      " should do next, then a line that begins with User Response: and holds the customer's " +
      "next message, one short message at a time. The agent sees only the second part.",
    "When everything the customer wants is settled, or the agent has clearly refused it for " +
      `good, the second part is ${STOP_MARKER} alone.`,
  ]),
  verify: [
    "Below is a conversation between a customer, who is played by a simulator, and a service " +
      "agent, and the message that the simulator proposes to send next as the customer.",
    "Judge that message. It is good if the customer could have written it: it keeps to what " +
      "the customer wants and knows, invents nothing, does not speak for the agent, and ends " +
      "the conversation only when nothing is left to do.",
    "Answer with one word: true if it is good, false if it is not.",
    "",
    "Conversation:",
    "{transcript}",
    "",
    "Proposed message:",
    "{response}",
    "",
    "Answer:",
  ].join("\n"),
  reflect: [
    "Below is a conversation between a customer, who is played by a simulator, and a service " +
      "agent, and a message that the simulator proposed to send next as the customer. The " +
      "message was rejected.",
    "Say briefly what is wrong with it, then write a better one. Write the word Response: " +
      "exactly once, before the better message, and nothing after that message.",
    "",
    "Conversation:",
    "{transcript}",
    "",
    "Rejected message:",
    "{response}",
    "",
    "Answer in this form:",
    "",
    "Reflection: what is wrong",
    "Response: the better message",
  ].join("\n"),
};

function instructed(form: readonly string[]): InstructedPrompt {
  const rules = [
    "You play a customer who talks to a service agent in a chat. The other side's messages " +
      "are the agent's; yours are the customer's.",
    "",
    "Keep to these rules:",
    ...[
      ...form,
      "Tell things when they are needed, not all at once.",
      "Say only what the description says or implies. Where the agent asks for something it " +
        "does not say, the customer does not know it.",
      "Put things in the customer's own words instead of quoting the description, and keep to" +
        " the described manner.",
      "Never act as the agent: do not offer help, and do not claim to look up or change anything.",
    ].map((rule) => `- ${rule}`),
  ].join("\n");
  return {
    withInstruction: `${rules}\n\nThe customer, and what they want:\n{instruction}`,
    withoutInstruction: rules,
  };
}

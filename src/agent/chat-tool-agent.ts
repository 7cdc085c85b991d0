import { writeChatTurn } from "../engine/chat/chat-turn-text.ts";
import type { Agent, Opening, Reading } from "./agent.ts";
import { keepCallIds } from "./call-id.ts";
import { judgeChatCalls } from "./judge-chat-calls.ts";
import { withReasoning } from "./split-reasoning.ts";
import {
  countStatuses,
  toCallReading,
  toObservedMessage,
  toWords,
  type ToolIntentOptions,
} from "./tool-intents.ts";
import { containsMarkup, toAttemptPlace } from "./turn-form.ts";
import { appendInstruction } from "./tool-use-policy.ts";

/** Markup of calls and reasoning that a server without the model's parsers leaves in the text. */
const markup = ["<tool_call>", "<function=", "[TOOL_CALLS]", "<|tool_call", "<think>"];

/** Settings of a tool-calling agent for engines that return messages. */
export type ChatToolOptions = Omit<ToolIntentOptions, "parallelResults" | "execute">;

/**
 * Creates the tool-calling agent for engines that return messages. It behaves as `createToolCallingAgent()`, but the
 * server has already split a turn into text and calls.
 */
export function createChatToolAgent(options: ChatToolOptions): Agent {
  return {
    strategy: "tool-calling",

    open({ policyText, tools, firstUserText }): Opening {
      const system = appendInstruction(policyText, options.toolUsePolicy);
      // Some servers refuse an empty system message.
      const policy = system.trim() === "" ? [] : [{ role: "system", content: system } as const];
      return { messages: [...policy, { role: "user", content: firstUserText }], tools };
    },

    read({ text, turnIndex }): Reading {
      return { ...toWords(text, turnIndex), reasoning: "", attemptCounts: {} };
    },

    readMessage({ content, reasoning, toolCalls, tools, turnIndex, finish }): Reading {
      const attempts = judgeChatCalls(toolCalls, { tools, finish });
      const ids = keepCallIds(
        toolCalls.map(({ id }) => id),
        turnIndex,
      );
      const { message, intents } =
        attempts.length > 0
          ? toCallReading(attempts, { content, ids, tools }, options)
          : toWords(content, turnIndex);
      const { spans } = writeChatTurn({ content, toolCalls });
      return {
        message: withReasoning(message, reasoning),
        reasoning,
        intents,
        attemptCounts: countStatuses(attempts),
        form: {
          attempts: attempts.map((attempt, index) =>
            toAttemptPlace({ ...attempt, span: spans[index]! }),
          ),
          leakedMarkup: containsMarkup(content, markup),
          thinkingMalformed: false,
        },
      };
    },

    observe: (observed) => observed.map(toObservedMessage),
  };
}

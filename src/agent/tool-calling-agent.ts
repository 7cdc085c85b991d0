import type { Message } from "../message.ts";
import type { Attempt } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import type { Agent, Observed, Opening, Reading } from "./agent.ts";
import { chooseCallIds } from "./call-id.ts";
import { asReported } from "./reported-calls.ts";
import { withReasoning } from "./split-reasoning.ts";
import {
  countStatuses,
  refuseAttempt,
  toAssistant,
  toCallReading,
  toObservedMessage,
  toWords,
  type ToolIntentOptions,
} from "./tool-intents.ts";
import { appendInstruction } from "./tool-use-policy.ts";
import { isCall } from "./turn-form.ts";
import {
  judgeForm,
  splitTurn,
  type TurnFormats,
  type TurnParts,
  type TurnToRead,
} from "./turn-parts.ts";

/** Settings of a tool-calling agent. */
export interface ToolCallingOptions extends TurnFormats, ToolIntentOptions {}

/**
 * Creates the agent that calls tools through the chat template. The policy text is the system
 * message. A turn without a call is sent to the user. A malformed call returns an error to the
 * policy under its own call id.
 */
export function createToolCallingAgent(options: ToolCallingOptions): Agent {
  const { toolUsePolicy, parallelResults = true } = options;
  return {
    strategy: "tool-calling",

    open({ policyText, tools, firstUserText }): Opening {
      const system = appendInstruction(policyText, toolUsePolicy);
      return {
        messages: [
          { role: "system", content: system },
          { role: "user", content: firstUserText },
        ],
        tools,
      };
    },

    read(turn): Reading {
      const parts = splitTurn(turn, options);
      const found = parts.attempts.filter(isCall);
      const calls =
        options.execute === "reported" ? asReported(found, parts.compat.calls, turn) : found;
      const { message, intents } =
        calls.length > 0
          ? toCallReading(calls, toCallTurn(calls, parts, turn), options)
          : readText(parts, turn);
      return {
        message: withReasoning(message, parts.reasoning),
        reasoning: parts.reasoning,
        intents,
        attemptCounts: countStatuses([...parts.drafts, ...parts.attempts]),
        form: judgeForm(parts, message.content, turn, options),
      };
    },

    observe(observed: readonly Observed[]): readonly Message[] {
      const messages = observed.map(toObservedMessage);
      const [first] = messages;
      if (parallelResults || first?.role !== "tool" || messages.length === 1) return messages;
      return [{ ...first, content: observed.map(({ text }) => text).join("\n\n") }];
    },
  };
}

/**
 * Reads a turn without a call, which is sent to the user. If it has no text but calls inside the
 * reasoning, the policy receives an error instead, because the user would receive an empty message.
 */
function readText(
  { reasoning, rest, drafts }: TurnParts,
  turn: TurnToRead,
): Pick<Reading, "message" | "intents"> {
  if (rest.trim() === "" && drafts.length > 0) {
    const ids = chooseCallIds(
      drafts.map(({ id }) => id),
      turn.turnIndex,
    );
    return {
      message: toAssistant("", drafts, ids),
      intents: drafts.map((attempt, index) => refuseAttempt(attempt, ids[index]!, turn.tools)),
    };
  }
  const content = reasoning === "" ? rest : rest.trimStart();
  return toWords(content, turn.turnIndex);
}

function toCallTurn(
  calls: readonly Attempt[],
  { compat }: TurnParts,
  { turnIndex, tools }: TurnToRead,
): Parameters<typeof toCallReading>[1] {
  const ids = chooseCallIds(
    calls.map(({ id }) => id),
    turnIndex,
  );
  return { content: compat.raises ? "" : compat.normalText, ids, tools };
}

import type { Message } from "../message.ts";
import type { Agent, Intent, Observed, Opening, Reading } from "./agent.ts";
import { callId } from "./call-id.ts";
import { readTextAction, respondAction, type TextAction } from "./read-text-action.ts";
import { withoutReasoning, withReasoning, type SplitReasoning } from "./split-reasoning.ts";
import { renderTextActionPrompt, type TextActionPrompt } from "./text-action-prompt.ts";

/** How an agent that names its actions as text is asked and read. */
export interface TextActionOptions {
  readonly strategy: "act" | "react";
  readonly prompt: TextActionPrompt;
  /** Absent: the whole text is read, reasoning included. */
  readonly splitReasoning?: SplitReasoning;
  /**
   * What becomes of an action that is no JSON (in a code fence, say, or as τ-bench's own prompt
   * shows it). `say`, the default, says it to the user, as τ-bench does; `refuse` tells the policy.
   * A turn that does not even try to name an action is said to the user either way.
   */
  readonly invalidAction?: "say" | "refuse";
}

/**
 * The agents `act` and `react`: the chat template is shown no tools, which the system message
 * describes instead; the policy writes one action a turn as JSON after `Action:`, and a tool's
 * result comes back in a user message as `API output: …`.
 *
 * JSON that is no action (a scalar, a list, no name, no arguments) ends τ-bench's own run of the
 * episode with an exception and the reward 0. Here the policy is told what is wrong, in the form of
 * a tool's result, and goes on; with the limit `maxFormatErrors: 1` the episode ends at once, and is
 * worth in τ-bench's environments what it is worth there.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/agents/chat_react_agent.py.
 */
export function textActionAgent(options: TextActionOptions): Agent {
  const { strategy, prompt } = options;
  return {
    strategy,

    open({ policyText, tools, firstUserText }): Opening {
      return {
        messages: [
          { role: "system", content: renderTextActionPrompt(prompt, policyText, tools) },
          { role: "user", content: firstUserText },
        ],
        tools: [],
      };
    },

    read({ text, turnIndex, finish, reasoningOpened }): Reading {
      const { reasoning, rest } = withoutReasoning(text, options.splitReasoning, reasoningOpened);
      const content = reasoning === "" ? rest : rest.trimStart();
      const found = readTextAction(content);
      const action = finish === "length" ? cutOff(found) : refuseInvalid(found, options);
      return {
        message: withReasoning({ role: "assistant", content }, reasoning),
        reasoning,
        intents: [toIntent(action, callId(turnIndex, 0))],
        attemptCounts: countAttempt(action),
      };
    },

    observe(observed: readonly Observed[]): readonly Message[] {
      return observed.map(({ from, text }) => ({
        role: "user",
        content: from === "user" ? text : `API output: ${text}`,
      }));
    },
  };
}

/** An action that was cut off is never performed; what was meant for the user is still said. */
function cutOff(action: TextAction): TextAction {
  if (action.type === "text" && !action.isAttempt) return action;
  const observation = "Error: the action was cut off";
  return { type: "mistake", status: "truncated-by-length", observation };
}

function refuseInvalid(action: TextAction, { invalidAction }: TextActionOptions): TextAction {
  if (invalidAction !== "refuse" || action.type !== "text" || !action.isAttempt) return action;
  const observation = "Error: the action is not valid JSON";
  return { type: "mistake", status: "invalid-json", observation };
}

/** The name under which the episode records an action whose name could not be read. */
const unreadableName = "unreadable_action";

function toIntent(action: TextAction, id: string): Intent {
  switch (action.type) {
    case "text":
      return { type: "act", callId: id, action: { type: "say", content: action.text } };
    case "mistake": {
      const { name = unreadableName, status, observation } = action;
      return { type: "refuse", callId: id, name, status, observation };
    }
    case "action": {
      const content = action.name === respondAction ? action.arguments.get("content") : undefined;
      if (typeof content === "string") {
        return { type: "act", callId: id, action: { type: "say", content } };
      }
      const { name, arguments: given } = action;
      return { type: "act", callId: id, action: { type: "call", name, arguments: given } };
    }
  }
}

function countAttempt(action: TextAction): Reading["attemptCounts"] {
  if (action.type === "action") return { ok: 1 };
  if (action.type === "mistake") return { [action.status]: 1 };
  return action.isAttempt ? { "invalid-json": 1 } : {};
}

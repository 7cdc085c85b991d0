import type { Message } from "../message.ts";
import type { Agent, Intent, Observed, Opening, Reading } from "./agent.ts";
import { callId } from "./call-id.ts";
import { readTextAction, respondAction, type TextAction } from "./read-text-action.ts";
import { withoutReasoning, withReasoning, type SplitReasoning } from "./split-reasoning.ts";
import { renderTextActionPrompt, type TextActionPrompt } from "./text-action-prompt.ts";

/** Settings of an agent that names its actions as text. */
export interface TextActionOptions {
  readonly strategy: "act" | "react";
  readonly prompt: TextActionPrompt;
  /** Splits a reply into reasoning and normal text. If absent, the complete text is read, including reasoning. */
  readonly splitReasoning?: SplitReasoning;
  /**
   * The treatment of an action that is not valid JSON, for example in a code fence or in the form
   * that τ-bench's own prompt shows. `say` (default) sends it to the user, as τ-bench does.
   * `refuse` returns an error to the policy. A turn that does not attempt an action is sent to the
   * user in both cases.
   */
  readonly invalidAction?: "say" | "refuse";
}

/**
 * Creates the agent `act` or `react`. The system message describes the tools instead of the chat
 * template. The policy writes one action a turn as JSON after `Action:`, and a tool's result
 * returns in a user message as `API output: …`.
 *
 * JSON that is not an action (a scalar, a list, no name, no arguments) ends an episode of τ-bench
 * with an exception and reward 0. Here the policy receives the error as a tool's result and
 * continues. With `maxFormatErrors: 1` the episode ends immediately, with τ-bench's reward in its
 * environments.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/agents/chat_react_agent.py.
 */
export function createTextActionAgent(options: TextActionOptions): Agent {
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

/** Refuses an action that was cut off. Text for the user is still sent. */
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

/** The recorded name of an action without a readable name. */
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

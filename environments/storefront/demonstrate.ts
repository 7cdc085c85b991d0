import { assertInvariant } from "../../src/errors.ts";
import type { Action } from "../../src/environment/environment.ts";
import type { Message } from "../../src/message.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import type { Task } from "../../src/task.ts";
import type { StorefrontData } from "./draw-task.ts";
import { createStorefront } from "./storefront.ts";
import { createStorefrontExpert, type StorefrontExpert, toTurnText } from "./storefront-expert.ts";
import { createStorefrontUser } from "./storefront-user.ts";

/** The most turns of a conversation; longer ones are cut off. */
const maxTurns = 40;

/** A conversation by the expert. */
export interface Demonstration {
  readonly messages: readonly Message[];
  /** The assistant's turns as text, in order. */
  readonly turns: readonly { readonly text: string; readonly isSlip: boolean }[];
  readonly reward: number;
  /** True if the customer left before the conversation was cut off. */
  readonly isDone: boolean;
}

/** Options of `demonstrate()`. */
export interface DemonstrationOptions {
  /** The seed of the customer and the expert. */
  readonly seed: number;
  /** Probability of a deliberate mistake in a turn, in [0, 1]. Default 0. */
  readonly slipRate?: number;
  /** The agent. Default: the expert. */
  readonly agent?: StorefrontExpert;
}

/** Plays a conversation about a task with the expert, an expert that makes mistakes, or another rule-based agent. */
export async function demonstrate(
  task: Task<StorefrontData>,
  { seed, slipRate = 0, agent = createStorefrontExpert({ seed, slipRate }) }: DemonstrationOptions,
): Promise<Demonstration> {
  const { signal } = new AbortController();
  const user = createStorefrontUser().open(task, { seed });
  await using world = await createStorefront().open(task, { user, signal });
  const messages: Message[] = [{ role: "user", content: await world.begin({ signal }) }];
  const turns: { text: string; isSlip: boolean }[] = [];
  let isDone = false;
  for (let turnIndex = 0; turnIndex < maxTurns && !isDone; turnIndex++) {
    const { action, isSlip } = agent.act(messages);
    turns.push({ text: toTurnText(action), isSlip });
    const { observation, done } = await world.step(action, { signal });
    messages.push(...toMessages(action, observation, turnIndex));
    isDone = done !== undefined;
  }
  const { reward } = await world.score({ signal });
  assertInvariant(reward !== null, "a storefront scores every attempt");
  return { messages, turns, reward, isDone };
}

function toMessages(action: Action, observation: string, turnIndex: number): readonly Message[] {
  if (action.type === "say") {
    return [
      { role: "assistant", content: action.content },
      { role: "user", content: observation },
    ];
  }
  const { name } = action;
  const id = `turn-${turnIndex}`;
  const argumentsText = stringifyPythonJson(action.arguments, { ensureAscii: false });
  return [
    { role: "assistant", content: "", toolCalls: [{ id, name, argumentsText }] },
    { role: "tool", content: observation, toolCallId: id, name },
  ];
}

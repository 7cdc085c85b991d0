import type { Action } from "../../src/environment/environment.ts";
import { type Random, createSeededRandom } from "../../src/environment/seeded-random.ts";
import type { Message } from "../../src/message.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import { agentPhrases } from "./agent-phrases.ts";
import { decideTurn, type ExpertTurn } from "./decide-turn.ts";
import { fillPhrase } from "./phrase.ts";

/** Settings of `createStorefrontExpert()`. */
export interface StorefrontExpertOptions {
  /** Chooses phrases and mistakes. */
  readonly seed: number;
  /** Probability of a deliberate mistake in a turn, in [0, 1]. Default 0. */
  readonly slipRate?: number;
}

/** The expert's action. `isSlip` is true for a deliberate mistake. */
export interface ExpertAction {
  readonly action: Action;
  readonly isSlip: boolean;
}

/** A rule-based agent. */
export interface StorefrontExpert {
  /** Decides from the conversation alone. */
  act(messages: readonly Message[]): ExpertAction;
}

/**
 * Creates an agent that follows the policy and solves every task of `createStorefrontUser()`. With a slip rate, it makes
 * deliberate mistakes, sees their results and continues from there. The same seed and conversation give the same
 * action.
 */
export function createStorefrontExpert({
  seed,
  slipRate = 0,
}: StorefrontExpertOptions): StorefrontExpert {
  return {
    act(messages) {
      const random = createSeededRandom(`storefront/expert/${seed}/${messages.length}`);
      const turn = decideTurn(messages);
      const isSlip = random.chance(slipRate);
      return { action: toAction(isSlip ? slip(turn, random) : turn, random), isSlip };
    },
  };
}

/** An action as the text of a turn, in the grammar of the Qwen family. */
export function toTurnText(action: Action): string {
  if (action.type === "say") return action.content;
  const given = stringifyPythonJson(action.arguments, { ensureAscii: false });
  return `<tool_call>\n{"name": "${action.name}", "arguments": ${given}}\n</tool_call>`;
}

/** A turn as an action of the environment, in randomly chosen words. */
export function toAction(turn: ExpertTurn, random: Random): Action {
  if (turn.type === "call") return { ...turn, arguments: new Map(Object.entries(turn.arguments)) };
  const phrase = random.pick<string>(agentPhrases[turn.phrase]);
  return { type: "say", content: fillPhrase(phrase, turn.slots) };
}

/** Makes a mistake that is typical of small models: a wrong character, or the wrong moment. */
function slip(turn: ExpertTurn, random: Random): ExpertTurn {
  if (turn.type === "call") {
    const [key, value] = random.pick(Object.entries(turn.arguments));
    return { ...turn, arguments: { ...turn.arguments, [key]: misspell(value, random) } };
  }
  const { order } = turn.slots;
  if (order === undefined || random.chance(0.5)) {
    const phrase = random.pick(["askIdentity", "askColor", "askAddress", "leaveIt"] as const);
    return { type: "say", phrase, slots: {} };
  }
  return { ...turn, slots: { ...turn.slots, order: misspell(order, random) } };
}

/** Replaces one character by another of the same kind. */
export function misspell(text: string, random: Random): string {
  const index = random.between(0, text.length - 1);
  const old = text.charAt(index);
  const alphabet = /\d/.test(old) ? "0123456789" : "aeioulnrst";
  const other = random.pick([...alphabet].filter((character) => character !== old));
  return text.slice(0, index) + other + text.slice(index + 1);
}

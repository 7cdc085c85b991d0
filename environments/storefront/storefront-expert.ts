import type { Action } from "../../src/environment/environment.ts";
import { type Random, seededRandom } from "../../src/environment/seeded-random.ts";
import type { Message } from "../../src/message.ts";
import { stringifyPythonJson } from "../../src/python/json/json-stringify.ts";
import { agentPhrases } from "./agent-phrases.ts";
import { decideTurn, type ExpertTurn } from "./decide-turn.ts";
import { fillPhrase } from "./phrase.ts";

/** Settings of `storefrontExpert()`. */
export interface StorefrontExpertOptions {
  /** Chooses among phrases, and where it slips. */
  readonly seed: number;
  /** How often a turn is deliberately wrong, in [0, 1]. Default 0. */
  readonly slipRate?: number;
}

/** What the expert does, and whether that is one of its deliberate slips. */
export interface ExpertAction {
  readonly action: Action;
  readonly isSlip: boolean;
}

/** An agent by rule. */
export interface StorefrontExpert {
  /** Reads the conversation so far and nothing else. */
  act(messages: readonly Message[]): ExpertAction;
}

/**
 * An agent that keeps to the policy and solves every task that `storefrontUser()` brings up; with a
 * slip rate, a sloppy one that sees what came of its slips and goes on from there. Same seed and
 * conversation, same action.
 */
export function storefrontExpert({
  seed,
  slipRate = 0,
}: StorefrontExpertOptions): StorefrontExpert {
  return {
    act(messages) {
      const random = seededRandom(`storefront/expert/${seed}/${messages.length}`);
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

/** A turn as the environment takes it, in words that are drawn. */
export function toAction(turn: ExpertTurn, random: Random): Action {
  if (turn.type === "call") return { ...turn, arguments: new Map(Object.entries(turn.arguments)) };
  const phrase = random.pick<string>(agentPhrases[turn.phrase]);
  return { type: "say", content: fillPhrase(phrase, turn.slots) };
}

/** Makes one of the mistakes that small models make: a wrong character, or the wrong moment. */
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

/** Another character of the same kind in one place. */
export function misspell(text: string, random: Random): string {
  const index = random.between(0, text.length - 1);
  const old = text.charAt(index);
  const alphabet = /\d/.test(old) ? "0123456789" : "aeioulnrst";
  const other = random.pick([...alphabet].filter((character) => character !== old));
  return text.slice(0, index) + other + text.slice(index + 1);
}

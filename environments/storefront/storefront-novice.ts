import { type Random, seededRandom } from "../../src/environment/seeded-random.ts";
import type { Message } from "../../src/message.ts";
import { decideTurn, type ExpertTurn } from "./decide-turn.ts";
import { misspell, type StorefrontExpert, toAction } from "./storefront-expert.ts";

/** Settings of `storefrontNovice()`. */
export interface StorefrontNoviceOptions {
  /** Chooses among phrases, and where a mistake is made. */
  readonly seed: number;
  /** How often a turn is a beginner's instead of the expert's, in [0, 1]. */
  readonly mistakeRate: number;
}

/**
 * An agent that knows everything the expert knows and has a beginner's habits: now and then it gives up
 * where it should look further, changes something before it was told to, asks what it need not know, or
 * gets a number wrong. What it does is never marked as a slip: a policy that learns from it learns the
 * habits with the skills, and has something to get rid of by its own experience.
 */
export function storefrontNovice({ seed, mistakeRate }: StorefrontNoviceOptions): StorefrontExpert {
  return {
    act(messages) {
      const random = seededRandom(`storefront/novice/${seed}/${messages.length}`);
      const turn = random.chance(mistakeRate)
        ? beginnersTurn(messages, random)
        : decideTurn(messages);
      return { action: toAction(turn, random), isSlip: false };
    },
  };
}

/** What a beginner does where the expert would have done something else. */
function beginnersTurn(messages: readonly Message[], random: Random): ExpertTurn {
  const turn = decideTurn(messages);
  if (turn.type === "call") {
    if (random.chance(0.5)) return giveUp(random);
    const [key, value] = random.pick(Object.entries(turn.arguments));
    return { ...turn, arguments: { ...turn.arguments, [key]: misspell(value, random) } };
  }
  // A proposal is where the yes makes a difference: the same conversation, had it been given.
  const afterYes = decideTurn(messages, "yes");
  if (afterYes.type === "call" && random.chance(0.5)) return afterYes;
  const { order } = turn.slots;
  if (order !== undefined && random.chance(0.3)) {
    return { ...turn, slots: { ...turn.slots, order: misspell(order, random) } };
  }
  if (random.chance(0.5)) return giveUp(random);
  return { type: "say", phrase: random.pick(["askIdentity", "askColor", "askAddress"]), slots: {} };
}

function giveUp(random: Random): ExpertTurn {
  return { type: "say", phrase: random.pick(["refuseUnknown", "leaveIt"]), slots: {} };
}

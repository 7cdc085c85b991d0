import { type Random, createSeededRandom } from "../../src/environment/seeded-random.ts";
import type { Message } from "../../src/message.ts";
import { decideTurn, type ExpertTurn } from "./decide-turn.ts";
import { misspell, type StorefrontExpert, toAction } from "./storefront-expert.ts";

/** Settings of `createStorefrontNovice()`. */
export interface StorefrontNoviceOptions {
  /** Chooses phrases and mistakes. */
  readonly seed: number;
  /** Probability of a beginner's turn instead of the expert's, in [0, 1]. */
  readonly mistakeRate: number;
}

/**
 * Creates an agent with the expert's knowledge and a beginner's habits: at times it stops where more work is
 * needed, changes an order without consent, asks needless questions, or gets a number wrong. Its mistakes are never
 * marked as slips: a policy that learns from it learns the habits with the skills, and has something to improve by
 * its own experience.
 */
export function createStorefrontNovice({
  seed,
  mistakeRate,
}: StorefrontNoviceOptions): StorefrontExpert {
  return {
    act(messages) {
      const random = createSeededRandom(`storefront/novice/${seed}/${messages.length}`);
      const turn = random.chance(mistakeRate)
        ? beginnersTurn(messages, random)
        : decideTurn(messages);
      return { action: toAction(turn, random), isSlip: false };
    },
  };
}

/**
 * Returns a beginner's turn: the expert's turn with a mistake, or another turn in its place. By chance it may equal the
 * expert's.
 */
function beginnersTurn(messages: readonly Message[], random: Random): ExpertTurn {
  const turn = decideTurn(messages);
  if (turn.type === "call") {
    if (random.chance(0.5)) return giveUp(random);
    const [key, value] = random.pick(Object.entries(turn.arguments));
    return { ...turn, arguments: { ...turn.arguments, [key]: misspell(value, random) } };
  }
  // A proposal can be skipped: decides as if the customer had already agreed.
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

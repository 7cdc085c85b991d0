import { type Random, createSeededRandom } from "../../src/environment/seeded-random.ts";
import { UsageError } from "../../src/errors.ts";
import type { User, UserLine, UserSession } from "../../src/user/user.ts";
import type { StorefrontData } from "./draw-task.ts";
import type { Goal } from "./goal.ts";
import { hearAgent, misunderstands } from "./hear-agent.ts";
import { fillPhrase } from "./phrase.ts";
import {
  completeRequestPhrases,
  framePhrases,
  goalSlots,
  replyPhrases,
  requestPhrases,
  thingPhrases,
  whichPhrases,
} from "./user-phrases.ts";

/** The number of misunderstandings that the customer tolerates. */
const patience = 3;
/** The number of times that the customer gives the same kind of answer to one request. */
const maxRepeats = 2;

/**
 * Creates the shop's customers, without a model. A customer brings up the task's requests one by one, in words
 * chosen by the seed, answers questions, agrees or refuses by the goal, and leaves when nothing is left to ask or
 * the agent does not understand.
 *
 * `open()` throws UsageError for a task of another environment.
 */
export function createStorefrontUser(): User<StorefrontData> {
  return {
    strategy: "storefront",
    repeatable: true,
    open(task, { seed }) {
      if (task.environment !== "storefront") {
        throw new UsageError(
          `Cannot speak for task ${task.id}: it is of ${task.environment}, expected storefront`,
        );
      }
      const customer = new ScriptedCustomer(
        task.data,
        createSeededRandom(`${task.id}/user/${seed}`),
      );
      return toSession(customer);
    },
  };
}

function toSession(customer: ScriptedCustomer): UserSession {
  return {
    async begin({ signal }) {
      signal.throwIfAborted();
      return customer.open();
    },
    async reply(agentText, { signal }) {
      signal.throwIfAborted();
      return customer.reply(agentText);
    },
    usage: () => ({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 }),
  };
}

type ReplyKind = keyof typeof replyPhrases;

/** One customer in one conversation. */
class ScriptedCustomer {
  readonly #data: StorefrontData;
  readonly #random: Random;
  #givenCounts: Partial<Record<ReplyKind, number>> = {};
  #goalIndex = 0;
  #missCount = 0;
  #hasGivenIdentity = false;
  #hasInsisted = false;

  constructor(data: StorefrontData, random: Random) {
    this.#data = data;
    this.#random = random;
  }

  open(): string {
    const greeting = this.#random.pick(framePhrases.greeting);
    const introduction = this.#random.chance(0.3) ? `${this.#give("identity")} ` : "";
    return greeting + introduction + this.#request(this.#random.chance(0.5));
  }

  reply(agentText: string): UserLine {
    const goal = this.#goal;
    const type = hearAgent(agentText);
    switch (type) {
      case "asks-identity":
        return this.#answer("identity");
      case "asks-address":
        return goal.wish.type === "readdress" ? this.#answer("address") : this.#repeatRequest();
      case "asks-color":
        return goal.wish.type === "exchange" ? this.#answer("color") : this.#repeatRequest();
      case "proposes":
        return this.#decide(agentText);
      case "refuses":
        if (goal.end.type === "refused" && !this.#hasInsisted && this.#random.chance(0.3)) {
          this.#hasInsisted = true;
          return this.#give("insist");
        }
        return this.#nextRequest();
      case "settles":
        return this.#nextRequest();
      case "unclear":
        return this.#repeatRequest();
    }
  }

  get #goal(): Goal {
    return this.#data.goals[this.#goalIndex] as Goal;
  }

  /** Agrees to the matching proposal, and to no other. */
  #decide(agentText: string): UserLine {
    if (misunderstands(agentText, this.#goal)) return this.#repeatRequest(framePhrases.correction);
    return this.#answer(this.#goal.end.type === "declined" ? "no" : "yes");
  }

  /** Brings up the next request, or leaves. */
  #nextRequest(): UserLine {
    this.#goalIndex += 1;
    this.#givenCounts = {};
    this.#hasInsisted = false;
    if (this.#goalIndex < this.#data.goals.length) {
      return this.#random.pick(framePhrases.next) + this.#request(this.#random.chance(0.5));
    }
    return { text: this.#random.pick(framePhrases.bye), leaves: true };
  }

  /** Repeats the request in full, or leaves. */
  #repeatRequest(openings: readonly string[] = framePhrases.astray): UserLine {
    this.#missCount += 1;
    if (this.#missCount >= patience) {
      return { text: this.#random.pick(framePhrases.giveUp), leaves: true };
    }
    return this.#random.pick(openings) + this.#request(true);
  }

  #answer(kind: ReplyKind): UserLine {
    const count = (this.#givenCounts[kind] ?? 0) + 1;
    this.#givenCounts[kind] = count;
    return count > maxRepeats ? this.#repeatRequest() : this.#give(kind);
  }

  #give(kind: ReplyKind): string {
    const { customer, wrongPostcode } = this.#data;
    const isFirstIdentity = kind === "identity" && !this.#hasGivenIdentity;
    if (isFirstIdentity) this.#hasGivenIdentity = true;
    const postcode = (isFirstIdentity ? wrongPostcode : undefined) ?? customer.postcode;
    const slots = kind === "identity" ? { name: customer.name, postcode } : goalSlots(this.#goal);
    return fillPhrase(this.#random.pick(replyPhrases[kind]), slots);
  }

  /** The request in words; incomplete requests leave the agent a question to ask. */
  #request(isComplete: boolean): string {
    const goal = this.#goal;
    const complete = isComplete ? completeRequestPhrases[goal.wish.type] : undefined;
    const phrase = this.#random.pick(complete ?? requestPhrases[goal.wish.type]);
    const known = goal.knowsOrderId ? "known" : "unknown";
    const slots = goalSlots(goal);
    const which = fillPhrase(this.#random.pick(whichPhrases[known]), slots);
    const thing = fillPhrase(this.#random.pick(thingPhrases[known]), slots);
    return fillPhrase(phrase, {
      which,
      thing,
      address: slots["address"] ?? "",
      color: slots["color"] ?? "",
    });
  }
}

import { spreadBits } from "../../values/hash-text.ts";
import type { PolicyToken, ServerPolicy } from "./server-policy.ts";

/** Settings of `createSeededPolicy()`. */
export interface SeededPolicyOptions {
  /** The seed. Default 0. */
  readonly seed?: number;
  /** The number of ids. All ids are below it. Default 1 000. */
  readonly vocabularySize?: number;
  /**
   * The id that ends a turn. It is sampled with the probability that gives `meanLength`. Default 2.
   */
  readonly stopTokenId?: number;
  /** Mean number of tokens of a turn, including the stop id. Default 32. */
  readonly meanLength?: number;
}

/** The difference in nats between the logprob of the sampled id and the score of any other id. */
const UNLIKELY = 4;

/**
 * Creates a policy with random-looking turns. Each token and its logprob is a function of the seed
 * and of all earlier ids. A turn that is resumed after an abort continues unchanged, and a repeated
 * request gets the same reply.
 */
export function createSeededPolicy({
  seed = 0,
  vocabularySize = 1_000,
  stopTokenId = 2,
  meanLength = 32,
}: SeededPolicyOptions = {}): ServerPolicy {
  const initial = spreadBits(seed ^ 0x9e3779b9);

  /** Returns the token for the state that the earlier ids lead to. */
  function sample(state: number): PolicyToken {
    const stops = spreadBits(state ^ 0x51ed270b) % meanLength === 0;
    const id = stops ? stopTokenId : spreadBits(state ^ 0x2545f491) % vocabularySize;
    // Sixteenths are exact in binary and in decimal, so JSON does not change them.
    return { id, logprob: -(spreadBits(state ^ 0x68bc21eb) % 64) / 16 };
  }

  function* tokens(inputIds: readonly number[]): Generator<PolicyToken> {
    let state = initial;
    for (const id of inputIds) state = spreadBits(state ^ id);
    for (;;) {
      const token = sample(state);
      yield token;
      state = spreadBits(state ^ token.id);
    }
  }

  function score(inputIds: readonly number[]): number[] {
    let state = initial;
    return inputIds.map((id) => {
      const { id: likeliest, logprob } = sample(state);
      state = spreadBits(state ^ id);
      return id === likeliest ? logprob : logprob - UNLIKELY;
    });
  }

  return {
    name: "seeded",
    begin: ({ inputIds }) => tokens(inputIds),
    score: ({ inputIds }) => score(inputIds),
  };
}

import { describe, expect, test } from "vitest";
import { defaultLimits } from "../../episode/limits.ts";
import { describeNoPlace } from "./describe-no-place.ts";

describe("describeNoPlace()", () => {
  test("warns if a result may be too large for the queue, and no place is shared", () => {
    const message =
      "no --shared is given: a result above 100 kB, which is some 5,000 tokens, would end its run, and the " +
      "attempts of a worker that dies start again from their first turn";
    expect(describeNoPlace(undefined, defaultLimits)).toBe(message);
    expect(describeNoPlace("./shared", defaultLimits)).toBeUndefined();
  });

  test("is silent if all results fit", () => {
    const small = { ...defaultLimits, maxContextTokens: 2_048, maxTurns: 10 };
    // 17 bytes for each of 2,048 tokens, 16 more if all of them are sampled, and 1,000 for each of
    // 10 turns.
    expect(describeNoPlace(undefined, small)).toBeUndefined();
    expect(describeNoPlace(undefined, { ...small, maxTurns: 32 })).toBeUndefined();
    expect(describeNoPlace(undefined, { ...small, maxTurns: 33 })).toContain("no --shared");
  });
});

import { expect, test } from "vitest";
import { turnSum, turnTimes } from "./turn-time.ts";

test("turnTimes() subtracts the queue from the engine's time, and omits unmeasured parts", () => {
  const turn = { engineMs: 40, queueMs: 15.5, parseMs: 7, environmentMs: 5, userMs: 0 };
  expect(turnTimes(turn)).toEqual({
    queue: 15.5,
    engine: 24.5,
    parse: 7,
    environment: 5,
    user: 0,
  });
  expect(turnSum(turn)).toBe(52);
  // As rows of format 1 have it.
  expect(turnTimes({ engineMs: 40, environmentMs: 5 })).toEqual({
    queue: undefined,
    engine: 40,
    parse: undefined,
    environment: 5,
    user: undefined,
  });
  // The engine's clock differs from ours.
  expect(turnTimes({ engineMs: 3, queueMs: 4, environmentMs: 0 })).toMatchObject({
    queue: 3,
    engine: 0,
  });
});

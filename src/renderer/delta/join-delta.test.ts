import { describe, expect, test } from "vitest";
import { joinDelta } from "./join-delta.ts";

const [close, end, user, observation, word] = [1, 2, 3, 4, 50];
const closing = { stops: new Set([close, end]), openers: new Set<number>() };
const opening = { stops: new Set([end, user, observation]), openers: new Set([user, observation]) };

describe("joinDelta()", () => {
  test("leaves out the close that the policy sampled", () => {
    expect(joinDelta([close, 10, 11], close, closing)).toEqual({
      ids: [10, 11],
      closeSynthesised: false,
    });
  });

  test("keeps another stop id in place of the template's and reports it", () => {
    expect(joinDelta([close, 10, 11], end, closing)).toEqual({
      ids: [10, 11],
      closeSynthesised: false,
      foreignStopId: end,
    });
  });

  test.each([word, undefined])("synthesises the close after %s", (lastSampledId) => {
    expect(joinDelta([close, 10], lastSampledId, closing)).toEqual({
      ids: [close, 10],
      closeSynthesised: true,
    });
  });

  test("continues after the opener that the policy sampled", () => {
    expect(joinDelta([observation, 10], observation, opening)).toEqual({
      ids: [10],
      closeSynthesised: false,
    });
  });

  test("drops the opener of another turn than the one that follows", () => {
    expect(joinDelta([user, 10], observation, opening)).toEqual({
      ids: [user, 10],
      closeSynthesised: false,
      droppedStopId: observation,
    });
  });

  test("adds the opener after an ordinary stop", () => {
    expect(joinDelta([user, 10], end, opening)).toEqual({
      ids: [user, 10],
      closeSynthesised: false,
      foreignStopId: end,
    });
  });
});

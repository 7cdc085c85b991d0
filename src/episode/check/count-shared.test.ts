import { expect, test } from "vitest";
import { sharedFault } from "./count-shared.ts";

const call = { source: "switch", callId: "a", observation: "on", result: "acted" };
const words = { source: "user", callId: "b", observation: "Fine.", result: "acted" };
const episode = {
  forkedFrom: { rolloutId: "lamp/test/0#0", turnIndex: 2 },
  turns: [{ steps: [call] }, { steps: [words] }, { steps: [call, call] }],
  counts: { formatErrorCount: 1 },
  userUsage: { callCount: 5, inputTokenCount: 50, outputTokenCount: 5, costUsd: 0.5 },
};
const shared = {
  turnCount: 2,
  toolCallCount: 1,
  formatErrorCount: 0,
  userUsage: { callCount: 2, inputTokenCount: 20, outputTokenCount: 2, costUsd: 0.2 },
};

test("a fork's shared counts follow from its turns, and are at most its totals", () => {
  expect(sharedFault({ ...episode, shared })).toBeUndefined();
  const { forkedFrom: _place, ...alone } = episode;
  expect(sharedFault(alone)).toBeUndefined();
  expect(sharedFault(episode)).toBe("shared is undefined");
});

test.each<[shared: unknown, fault: string]>([
  [3, "shared is 3"],
  [{ ...shared, userUsage: undefined }, 'shared is {"turnCount":2,'],
  [{ ...shared, turnCount: 3 }, "shared.turnCount is 3, expected 2 by the turns before the fork"],
  [{ ...shared, toolCallCount: 3 }, "shared.toolCallCount is 3, expected 1 by the turns"],
  [{ ...shared, formatErrorCount: 2 }, "shared.formatErrorCount is 2, expected at most the 1"],
  [
    { ...shared, userUsage: { ...shared.userUsage, callCount: 6 } },
    "shared.userUsage.callCount is 6, expected at most the 5 of the whole episode",
  ],
  [
    { ...shared, userUsage: { ...shared.userUsage, inputTokenCount: -1 } },
    "shared.userUsage.inputTokenCount is -1, expected at most the 50",
  ],
  [
    { ...shared, userUsage: { ...shared.userUsage, costUsd: "1" } },
    'shared.userUsage.costUsd is "1", expected at most the 0.5',
  ],
])("names the fault of %j", (stated, fault) => {
  expect(sharedFault({ ...episode, shared: stated })).toContain(fault);
});

test("an episode that is not a fork has no shared counts", () => {
  const { forkedFrom: _none, ...whole } = episode;
  expect(sharedFault({ ...whole, shared })).toBe(
    "shared is present, but the episode is not a fork",
  );
});

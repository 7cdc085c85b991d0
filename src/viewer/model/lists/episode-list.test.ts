import { describe, expect, test } from "vitest";
import type { EpisodeEntry } from "../episode-entry.ts";
import { listFields, readFilter, sortEpisodes } from "./episode-filter.ts";
import { groupEpisodes } from "./group-entry.ts";
import { quoted } from "./list-fields.ts";
import { verdictOf } from "../verdict.ts";

function entry(order: number, more: Partial<EpisodeEntry> = {}): EpisodeEntry {
  const { taskIndex = order, sampleIndex = 0 } = more;
  return {
    order,
    rolloutId: `shop/${taskIndex}#${sampleIndex}`,
    groupId: `shop/${taskIndex}`,
    taskId: `shop/${taskIndex}`,
    taskIndex,
    sampleIndex,
    outcome: "completed",
    stopReason: "user-left",
    rowCount: 1,
    turnCount: 3,
    tokenCount: 100,
    sampledTokenCount: 10,
    toolCallCount: 1,
    formatErrorCount: 0,
    startedAtMs: 0,
    durationMs: 1_500,
    ...more,
  };
}

const entries = [
  entry(0, { reward: 1, turnCount: 12 }),
  entry(1, { reward: 0, formatErrorCount: 2 }),
  entry(2, { outcome: "failed", stopReason: "failure", party: "engine" }),
  entry(3, { outcome: "truncated", stopReason: "max-turns", reward: 0.5 }),
];

function kept(filter: string): readonly number[] {
  const { test: isKept } = readFilter(filter);
  return entries.filter((each) => isKept(each)).map(({ order }) => order);
}

describe("readFilter()", () => {
  test.each<[string, readonly number[]]>([
    ["", [0, 1, 2, 3]],
    ["reward<1", [1, 3]],
    ["reward>=0 reward<0.5", [1]],
    ["reward=none", [2]],
    ["reward!=none", [0, 1, 3]],
    ["outcome:trunc", [3]],
    ["party=engine", [2]],
    ["malformed>0", [1]],
    ["turns=12", [0]],
    ["seconds<2 SHOP/1#", [1]],
    ["end!=user-left", [2, 3]],
    ["Reward<1 OUTCOME:trunc", [3]],
    ["success=yes", [0]],
    ["success=no", [1, 3]],
    ["success=none", [2]],
  ])("%j keeps %j", (filter, orders) => {
    expect(kept(filter)).toEqual(orders);
  });

  test("reports unknown parts, and keeps the rest", () => {
    expect(readFilter("height>3 turns<x reward=1").problems).toEqual([
      "there is no “height”",
      "“turns<x” compares with no number",
    ]);
    expect(kept("height>3 reward=1")).toEqual([0]);
  });
});

test.each(["state of things", 'a "b"', "x<y", "tone: warm", "a=b c"])(
  "the component %j can be filtered",
  (name) => {
    const fields = listFields([name, "x"]);
    const filter = readFilter(`${quoted(`reward.${name}`)}>=2`, fields);
    expect(filter.problems).toEqual([]);
    expect(filter.test(entry(0, { components: { [name]: 2, x: 0 } }))).toBe(true);
    expect(filter.test(entry(0, { components: { [name]: 1, x: 9 } }))).toBe(false);
  },
);

describe("sortEpisodes()", () => {
  const orders = (order: string) => sortEpisodes(entries, order).map((each) => each.order);

  test("sorts both ways, with missing values last", () => {
    expect(orders("reward")).toEqual([1, 3, 0, 2]);
    expect(orders("-reward")).toEqual([0, 3, 1, 2]);
    expect(orders("-turns")).toEqual([0, 1, 2, 3]);
  });
});

describe("groupEpisodes()", () => {
  test("flags groups whose rewards are all equal, and only those", () => {
    const groups = groupEpisodes([
      entry(0, { taskIndex: 2, sampleIndex: 1, reward: 0 }),
      entry(1, { taskIndex: 1, sampleIndex: 0, reward: 1 }),
      entry(2, { taskIndex: 2, sampleIndex: 0, reward: 1 }),
      entry(3, { taskIndex: 1, sampleIndex: 1, reward: 1 }),
      entry(4, { taskIndex: 3, reward: 1 }),
      entry(5, { taskIndex: 4 }),
    ]);
    const facts = groups.map(({ taskIndex, mean, spread, isDegenerate, attempts }) => {
      return [taskIndex, mean, spread, isDegenerate, attempts.map(({ order }) => order)];
    });
    expect(facts).toEqual([
      [1, 1, 0, true, [1, 3]],
      [2, 0.5, 0.5, false, [2, 0]],
      [3, 1, 0, false, [4]],
      [4, undefined, undefined, false, [5]],
    ]);
  });
});

describe("verdictOf()", () => {
  const counts = {
    turnCount: 30,
    sampledTokenCount: 9,
    tokenCount: 20,
    toolCallCount: 2,
    formatErrorCount: 0,
    attemptCounts: {},
  };

  test("shows the differences from the expected state", () => {
    const difference = {
      state: [{ table: "orders", record: "9029", field: "status", wanted: "c", got: "p" }],
      missingCalls: [{ name: "cancel_order", argumentsText: "{}" }],
      extraCalls: [],
      missingOutputs: ["a", "b"],
    };
    expect(
      verdictOf({
        outcome: "truncated",
        stopReason: "max-turns",
        reward: 0,
        rewardDetails: { difference },
        counts: { ...counts, formatErrorCount: 1 },
      }),
    ).toEqual({
      tone: "bad",
      headline: "Reward 0",
      ending: "Cut off: the conversation was not over when it reached its limit of 30 turns.",
      reasons: [
        "1 place in the records is not as wanted.",
        "1 wanted call was never made.",
        "2 wanted outputs were not said to the user.",
        "1 of 30 turns was malformed.",
      ],
      difference,
    });
  });

  test("never takes a failure for a reward of 0", () => {
    const failure = { party: "engine", code: "engine/timeout", message: "…" } as const;
    const failed = { outcome: "failed", stopReason: "failure", failure, counts } as const;
    expect(verdictOf(failed)).toEqual({
      tone: "failed",
      headline: "No reward: the engine's failure, engine/timeout",
      ending: "Ended by a failure after 30 turns.",
      reasons: [],
    });
    const unscored = { outcome: "completed", stopReason: "user-left", counts } as const;
    expect(verdictOf(unscored)).toMatchObject({
      tone: "unscored",
      headline: "No reward: nothing scored this episode",
    });
  });
});

test("a verdict names a success where another rule than the reward 1 decides", () => {
  const { counts } = { counts: { turnCount: 1, formatErrorCount: 0 } as never };
  const judge = (reward: number, success?: boolean, threshold?: number) => {
    const judged = { counts, outcome: "completed", stopReason: "user-left", reward } as const;
    const own = success === undefined ? {} : { success };
    const { tone, headline } = verdictOf({ ...judged, ...own }, threshold);
    return [tone, headline];
  };
  expect(judge(0.1 + 0.2)).toEqual(["mixed", "Reward 0.3"]);
  expect(judge(0.6, true)).toEqual(["good", "Reward 0.6: a success"]);
  expect(judge(0.6, true, 0.7)).toEqual(["mixed", "Reward 0.6: no success"]);
  expect(judge(1, undefined, 2)).toEqual(["mixed", "Reward 1: no success"]);
  expect(judge(-1, undefined, -1)).toEqual(["good", "Reward -1: a success"]);
});

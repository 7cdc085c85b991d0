import { describe, expect, test } from "vitest";
import type { Difference } from "../../../environment/state/difference.ts";
import { haveNames, listFields, readFilter, sortEpisodes, whyText } from "./episode-filter.ts";
import type { EpisodeEntry } from "../episode-entry.ts";
import { countHits, findHits } from "./find-hits.ts";
import { firstReason } from "./first-reason.ts";
import { groupEpisodes, sortGroups } from "./group-entry.ts";

const nothing: Difference = { state: [], missingCalls: [], extraCalls: [], missingOutputs: [] };

describe("firstReason()", () => {
  const reasonOf = (difference: Partial<Difference>) =>
    firstReason({ reward: 0, rewardDetails: { difference: { ...nothing, ...difference } } });
  const call = { name: "cancel", argumentsText: '{"order": 1}' };

  test("names the first difference from the wanted result", () => {
    const place = { table: "orders", record: "9", field: "status", wanted: "sent" };
    expect(reasonOf({ state: [place], missingCalls: [call] })).toBe(
      'orders 9 · status: nothing instead of "sent"',
    );
    expect(reasonOf({ missingCalls: [call] })).toBe('never called cancel {"order": 1}');
    expect(reasonOf({ missingOutputs: ["29 July"] })).toBe("never said “29 July”");
    expect(reasonOf({ extraCalls: [call] })).toBe(
      'called cancel {"order": 1}, which was not wanted',
    );
    expect(reasonOf({})).toBeUndefined();
  });

  test("takes the first text of the details without a difference", () => {
    const judge = { score: 2, verdict: "too\nterse" };
    expect(firstReason({ reward: 0.5, rewardDetails: { judge } })).toBe("judge verdict: too terse");
    expect(firstReason({ reward: 1, rewardDetails: { judge } })).toBeUndefined();
    expect(firstReason({ reward: 0 })).toBeUndefined();
  });

  test("takes the message of a failure, and one line of it", () => {
    const failure = { party: "engine", code: "engine/timeout", message: "x".repeat(900) } as const;
    expect(firstReason({ failure })).toBe(`${"x".repeat(200)}…`);
  });
});

describe("a list of episodes", () => {
  function entry(sampleIndex: number, more: Partial<EpisodeEntry> = {}): EpisodeEntry {
    return {
      order: 0,
      rolloutId: `fix#${sampleIndex}`,
      groupId: "fix",
      taskId: "fix",
      taskIndex: 0,
      sampleIndex,
      outcome: "completed",
      stopReason: "finished",
      rowCount: 1,
      turnCount: 1,
      tokenCount: 1,
      sampledTokenCount: 1,
      toolCallCount: 0,
      formatErrorCount: 0,
      startedAtMs: 0,
      durationMs: 0,
      ...more,
    };
  }
  const entries = [
    entry(0, { about: "The RED rug", components: { state: 1, "my part": 0 }, reward: 1 }),
    entry(1, { reason: "too terse", components: { state: 0 }, reward: 0 }),
    entry(2, { outcome: "truncated", stopReason: "max-turns", reason: "too terse" }),
    entry(3, { outcome: "failed", stopReason: "failure", failureCode: "tool/error" }),
  ];
  const fields = listFields(["state", "my part"], new Map([["fix#1", 2]]));
  const kept = (filter: string) =>
    entries.filter(readFilter(filter, fields).test).map(({ sampleIndex }) => sampleIndex);

  test("says why each ended so", () => {
    expect(entries.map(whyText)).toEqual([
      "finished",
      "too terse",
      "cut off: max-turns · too terse",
      "tool/error",
    ]);
  });

  test.each([
    ["red", [0]],
    ["Terse", [1, 2]],
    ["about:rug", [0]],
    ['why:"too terse" end=max-turns', [2]],
    ["reward.state<1", [1]],
    ['"reward.my part"=0', [0]],
    ["hits>1", [1]],
    ["name=FIX", [0, 1, 2, 3]],
  ])("can be filtered by what it shows: %j", (filter, expected) => {
    expect(kept(filter)).toEqual(expected);
  });

  test("can be sorted by components and hits", () => {
    const order = (name: string) =>
      sortEpisodes(entries, name, fields).map(({ sampleIndex }) => sampleIndex);
    expect(order("reward.state")).toEqual([1, 0, 2, 3]);
    expect(order("-hits")).toEqual([1, 0, 2, 3]);
  });

  test("shows names of tasks only if numbers do not say the same", () => {
    expect(haveNames(entries)).toBe(true);
    expect(haveNames([entry(0, { taskId: "shop/test/3", taskIndex: 3 })])).toBe(false);
  });

  test("sorts groups by their figures", () => {
    const groups = groupEpisodes([
      entry(0, { groupId: "a", reward: 1 }),
      entry(0, { groupId: "b", reward: 0 }),
      entry(1, { groupId: "b", reward: 1 }),
      entry(0, { groupId: "c" }),
    ]);
    const order = (name: string) => sortGroups(groups, name).map(({ groupId }) => groupId);
    expect([order("mean"), order("-spread"), order("-attempts")]).toEqual([
      ["b", "a", "c"],
      ["b", "a", "c"],
      ["b", "a", "c"],
    ]);
  });
});

describe("countHits()", () => {
  test("looks in what the page shows, in any letter case", () => {
    const turn = { text: "Dune, dune", reasoning: "DUNE?", steps: [{ observation: "dune" }] };
    const conversation = {
      messages: [
        { role: "system", content: "Lend Dune." },
        { role: "assistant", content: "dune" },
      ],
      turns: [turn],
    } as unknown as Parameters<typeof countHits>[0];
    expect(countHits(conversation, "dune")).toBe(5);
    expect(countHits(conversation, "text")).toBe(0);
    expect(findHits("aXaxa", "axa")).toEqual([0]);
    expect(findHits("abc", "")).toEqual([]);
  });
});

import { describe, expect, test } from "vitest";
import { describeNumbers } from "../../../values/describe-numbers.ts";
import type { EpisodeEntry, RunFacts } from "../episode-entry.ts";
import { flattenValue } from "../flatten-value.ts";
import { listFields } from "./episode-filter.ts";
import { filterWords, quoted, readListFilter, sortList, toggleWord } from "./list-fields.ts";
import { dateText, runFields, runTexts } from "./run-fields.ts";
import { figuresOf, overviewOf } from "./run-figures.ts";
import { differingSettings, settingDifferences } from "./setting-differences.ts";
import { versionCurves } from "./version-curves.ts";

function entry(task: number, sample: number, more: Partial<EpisodeEntry> = {}): EpisodeEntry {
  return {
    order: 0,
    rolloutId: `shop/test/${task}#${sample}`,
    groupId: `shop/test/${task}`,
    taskId: `shop/test/${task}`,
    taskIndex: task,
    sampleIndex: sample,
    environment: "shop",
    split: "test",
    outcome: "completed",
    stopReason: "user-left",
    rowCount: 1,
    turnCount: 3,
    tokenCount: 100,
    sampledTokenCount: 10,
    toolCallCount: 1,
    formatErrorCount: 0,
    startedAtMs: 1_000,
    durationMs: 1_500,
    ...more,
  };
}

function facts(key: string, configuration: Record<string, unknown>): RunFacts {
  return {
    key,
    dir: `runs/${key}`,
    state: "finished",
    generation: 0,
    episodeCount: 2,
    configuration,
    damagedCount: 0,
    turnwright: "0.1.0",
  };
}

describe("figuresOf()", () => {
  test("takes means over tasks, leaves out branches, and has pass^k of successes", () => {
    const fork = { rolloutId: "shop/test/0#0", turnIndex: 1 } as const;
    const figures = figuresOf([
      entry(0, 0, { reward: 1, components: { state: 1, style: 0.5 } }),
      entry(0, 1, { reward: 0, components: { state: 0, style: 0.5 } }),
      entry(0, 2, { reward: 0, forkedFrom: fork }),
      entry(1, 0, { reward: 1, components: { state: 1 } }),
      entry(1, 1, { reward: 1 }),
      entry(2, 0),
    ]);
    expect(figures).toMatchObject({
      scopes: ["shop/test"],
      taskCount: 3,
      attemptCount: 2,
      scoredCount: 4,
      averageReward: { value: 0.75, taskCount: 2 },
      components: { state: { value: 0.75 }, style: { value: 0.5, taskCount: 1 } },
    });
    expect(Object.entries(figures.passHatK).map(([k, { value }]) => [k, value])).toEqual([
      ["1", 0.75],
      ["2", 0.5],
    ]);
    expect(figures.passAtK["2"]?.value).toBe(1);
  });

  test("has no mean without a score", () => {
    expect(figuresOf([entry(0, 0)])).toMatchObject({
      scoredCount: 0,
      passHatK: {},
      components: {},
    });
    expect(overviewOf(facts("a", {}), [])).not.toHaveProperty("startedAtMs");
  });
});

describe("settings of runs", () => {
  test("differ among rollouts, and among gateways", () => {
    const rollout = { env: "shop", split: "test", temperature: 1 };
    const gateway = { rows: "all", temperature: 1 };
    const differing = (...all: readonly Record<string, unknown>[]) =>
      differingSettings(all.map((configuration) => ({ configuration })));
    expect(differing(rollout, { ...rollout, env: "desk" }, gateway)).toEqual([]);
    expect(differing(rollout, { ...rollout, temperature: 0.6, "few-shot": "a" }, gateway)).toEqual([
      "temperature",
      "few-shot",
    ]);
  });

  test("are named with both values", () => {
    expect(settingDifferences({ a: 1, b: "x", c: [1] }, { a: 1, b: "y", d: true, c: [1] })).toEqual(
      [
        { name: "b", a: "x", b: "y" },
        { name: "d", b: "true" },
      ],
    );
  });
});

describe("a list of runs", () => {
  const runs = [
    overviewOf(facts("a", { env: "shop", temperature: 1 }), [entry(0, 0, { reward: 1 })]),
    overviewOf(facts("b", { env: "shop", temperature: 0.6 }), [entry(0, 0, { reward: 0 })]),
    overviewOf(facts("c", { env: "shop", temperature: 0.6 }), []),
  ];
  const fields = runFields(["temperature"]);
  const kept = (filter: string) => {
    const { test: isKept, problems } = readListFilter(filter, { fields, textsOf: runTexts });
    return [
      runs
        .filter(isKept)
        .map((run) => run.facts.key)
        .join(""),
      ...problems,
    ];
  };

  test.each([
    ["reward>0.5", ["a"]],
    ["reward=none", ["c"]],
    ["temperature<1", ["bc"]],
    ["env:SHOP/", ["ab"]],
    ["B", ["b"]],
    ["height=1", ["abc", "there is no “height”"]],
  ])("can be filtered: %j", (filter, expected) => {
    expect(kept(filter)).toEqual(expected);
  });

  test("can be sorted by each column", () => {
    const order = (name: string) =>
      sortList(runs, name, { fields, compareEqual: () => 0 }).map((run) => run.facts.key);
    expect(order("reward")).toEqual(["b", "a", "c"]);
    expect(order("-reward")).toEqual(["a", "b", "c"]);
    expect(order("-run")).toEqual(["c", "b", "a"]);
    expect(order("unknown")).toEqual(["a", "b", "c"]);
  });

  test("writes dates so that their order is that of the text", () => {
    expect(dateText(new Date(2026, 0, 5, 9, 7).getTime())).toBe("2026-01-05 09:07");
  });
});

describe("words of a filter", () => {
  test("stay together in quotation marks", () => {
    expect(filterWords('a  about:"red rug" "x y" "open')).toEqual([
      "a",
      'about:"red rug"',
      '"x y"',
      '"open',
    ]);
    expect([quoted("state"), quoted("my part")]).toEqual(["state", '"my part"']);
  });

  test("in quotation marks are text, also if they look like a condition", () => {
    const fields = [{ name: "a", title: "", meaning: "", valueOf: () => 1 }];
    const read = (filter: string) =>
      readListFilter<string>(filter, { fields, textsOf: (text) => [text] });
    expect(read('"a=2"').test("is A=2 so")).toBe(true);
    expect(read("a=2").test("is A=2 so")).toBe(false);
  });

  test("are added and taken away", () => {
    expect(toggleWord("a", "b")).toBe("a b");
    expect(toggleWord("a b", "a")).toBe("b");
  });
});

test("versionCurves() has the means by first version, in order, without empty curves", () => {
  const curves = versionCurves([
    entry(0, 0, { reward: 0.5, versions: ["9", "10"], components: { state: 1 } }),
    entry(0, 1, { reward: 0.5, versions: ["9"], turnCount: 5 }),
    entry(1, 0, { reward: 1, versions: ["10"], components: { state: 0 } }),
    entry(1, 1, { reward: 0.5, versions: ["10"] }),
    entry(2, 0, { reward: 1 }),
  ]);
  const shown = Object.fromEntries(
    curves.map(({ title, points }) => [
      title,
      points.map(({ version, value, count }) => `${version}: ${value} of ${count}`),
    ]),
  );
  expect(shown).toEqual({
    reward: ["9: 0.5 of 2", "10: 0.75 of 2"],
    success: ["9: 0 of 2", "10: 0.5 of 2"],
    state: ["9: 1 of 1", "10: 0 of 1"],
    turns: ["9: 4 of 2", "10: 3 of 2"],
    "sampled tokens": ["9: 10 of 2", "10: 10 of 2"],
    "groups with equal rewards": ["9: 1 of 1", "10: 0 of 1"],
  });
  expect(versionCurves([entry(0, 0, { reward: 1, versions: ["1"] })])).toEqual([]);
});

test("a component with the name of another heading has a heading of its own", () => {
  const titles = listFields(["style", "reward", "turns"]).map(({ name, title }) => [name, title]);
  expect(titles.slice(-3)).toEqual([
    ["reward.style", "style"],
    ["reward.reward", "reward.reward"],
    ["reward.turns", "reward.turns"],
  ]);
  const curves = versionCurves([
    entry(0, 0, { reward: 0, versions: ["1"], components: { reward: 1 } }),
    entry(0, 1, { reward: 1, versions: ["2"], components: { reward: 0 } }),
  ]);
  expect(curves.map(({ title }) => title)).toContain("reward.reward");
});

test("describeNumbers() gives mean, median, 95 % and sum", () => {
  expect(describeNumbers([4, 1, 1, 2])).toEqual({ mean: 2, median: 2, p95: 4, max: 4, sum: 8 });
  expect(describeNumbers([])).toBeUndefined();
});

describe("flattenValue()", () => {
  test("names the place of each value", () => {
    const value = {
      judge: { verdict: "terse", tags: ["a", 1] },
      parts: [{ n: 1 }, {}],
      none: null,
    };
    expect(flattenValue(value).values.map(({ path, text }) => [path.join("."), text])).toEqual([
      ["judge.verdict", "terse"],
      ["judge.tags", '["a",1]'],
      ["parts.0.n", "1"],
      ["parts.1", "{}"],
      ["none", "null"],
    ]);
    expect(flattenValue(3).values).toEqual([{ path: [], text: "3" }]);
  });

  test("counts what it leaves out", () => {
    const many = flattenValue(Object.fromEntries(Array.from({ length: 510 }, (_, at) => [at, at])));
    expect([many.values.length, many.rest]).toEqual([500, 10]);
    let deep: unknown = 1;
    for (let count = 0; count < 5_000; count++) deep = { deep };
    expect(flattenValue(deep)).toEqual({ values: [], rest: 1 });
  });
});

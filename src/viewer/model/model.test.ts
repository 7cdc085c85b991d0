import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { TreeTurn } from "../../episode/episode.ts";
import { causeWords } from "./branch-cause.ts";
import { cutLines, lineOf } from "./cut-lines.ts";
import { findKinds } from "./find-kinds.ts";
import { firstDifference } from "./first-difference.ts";
import { formatProbability, heatOf, surpriseSteps } from "./heat.ts";
import { histogram } from "./lists/histogram.ts";
import { decodeRow, encodeRow, type RowColumns } from "./row-columns.ts";
import { linkTo, readRoute, type Route } from "./route.ts";
import { searchTokens } from "./search-tokens.ts";
import { TokenTexts } from "./token-texts.ts";
import { findBranches, markContext } from "./row-tree.ts";
import { columnsOf, tokenText, visibleText } from "./visible-text.ts";
import { worstTokens } from "./worst-tokens.ts";

const span = { finish: "stop", promptHash: "", outputHash: "" } as const;

describe("findKinds()", () => {
  const stops = new Set([9]);

  test("names prompt, sampled ids, environment and the close that the policy owed", () => {
    const row = {
      tokenIds: [1, 2, 3, 9, 4, 5, 6, 9, 7, 8],
      promptLength: 2,
      turns: [
        { ...span, turnIndex: 0, start: 2, end: 4 },
        // Cut off by length: the next part starts with a close that was not sampled.
        { ...span, turnIndex: 1, start: 5, end: 7 },
        { ...span, turnIndex: 2, start: 9, end: 10 },
      ],
    };
    expect([...findKinds(row, stops)]).toEqual([0, 0, 1, 1, 2, 1, 1, 3, 2, 1]);
  });

  test("finds no close after a dropped stop, nor without known stop ids", () => {
    const turns = [{ ...span, turnIndex: 0, start: 1, end: 2, droppedStopId: 9 }];
    const row = { tokenIds: [1, 2, 3], promptLength: 1, turns };
    expect([...findKinds(row, stops)]).toEqual([0, 1, 2]);
    const open = { ...row, turns: [{ ...span, turnIndex: 0, start: 1, end: 2 }] };
    expect([...findKinds(open, undefined)]).toEqual([0, 1, 2]);
    expect([...findKinds(open, stops)]).toEqual([0, 1, 3]);
  });

  test("trusts a row's own mark of context", () => {
    const turns = [{ ...span, turnIndex: 0, start: 1, end: 2 }];
    const spans = [{ kind: "context", start: 2, end: 4 }];
    const row = { tokenIds: [1, 9, 3, 4, 5], promptLength: 1, turns, spans };
    expect([...findKinds(row, stops)]).toEqual([0, 1, 4, 4, 2]);
  });
});

describe("encodeRow()", () => {
  test("is read back to the very same numbers", () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.integer({ min: 0, max: 2 ** 31 - 1 }), fc.double()), { maxLength: 9 }),
        fc.string({ unit: "binary" }),
        (tokens, text) => {
          const columns: RowColumns = {
            header: {
              rolloutId: text,
              groupId: "g",
              segment: 0,
              tokenCount: tokens.length,
              promptLength: 0,
              turns: [],
              versions: [],
              metadata: {},
              outcome: "completed",
              stopReason: "user-left",
              reward: 0.5,
            },
            ids: Int32Array.from(tokens, ([id]) => id),
            logprobs: Float64Array.from(tokens, ([, logprob]) => logprob),
            kinds: Uint8Array.from(tokens, () => 1),
            mask: Uint8Array.from(tokens, () => 1),
          };
          const bytes = encodeRow(columns);
          expect(decodeRow(bytes.buffer as ArrayBuffer)).toEqual(columns);
        },
      ),
    );
  });
});

describe("cutLines()", () => {
  const sources = fc.array(
    fc.record({ width: fc.integer({ min: 1, max: 30 }), ends: fc.boolean(), breaks: fc.boolean() }),
    { maxLength: 60 },
  );
  const limits = fc.record({
    columns: fc.integer({ min: 1, max: 40 }),
    maxTokens: fc.integer({ min: 1, max: 12 }),
  });

  test("gives every token to one line, in order, within the limits, and one stretch to a line", () => {
    fc.assert(
      fc.property(sources, limits, (tokens, { columns, maxTokens }) => {
        const starts = [
          ...cutLines(
            {
              tokenCount: tokens.length,
              widthAt: (index) => tokens[index]!.width,
              endsLineAt: (index) => tokens[index]!.ends,
              breaks: Uint8Array.from(tokens, ({ breaks }) => Number(breaks)),
            },
            { columns, maxTokens },
          ),
        ];
        expect(starts.at(-1)).toBe(tokens.length);
        if (tokens.length > 0) expect(starts[0]).toBe(0);
        for (let line = 0; line + 1 < starts.length; line++) {
          const held = tokens.slice(starts[line], starts[line + 1]);
          expect(held.length).toBeGreaterThan(0);
          expect(held.length).toBeLessThanOrEqual(maxTokens);
          const width = held.reduce((sum, token) => sum + token.width, 0);
          expect(width <= columns || held.length === 1).toBe(true);
          expect(held.slice(1).some(({ breaks }) => breaks)).toBe(false);
          expect(held.slice(0, -1).some(({ ends }) => ends)).toBe(false);
          for (let at = starts[line]!; at < starts[line + 1]!; at++) {
            expect(lineOf(Uint32Array.from(starts), at)).toBe(line);
          }
        }
      }),
    );
  });
});

describe("visibleText()", () => {
  test("shows what steers or hides text, and leaves the rest", () => {
    expect(visibleText("a\u202Eb\u0000c\u0007\u007F")).toBe("a⟨U+202E⟩b␀c␇␡");
    expect(visibleText("\uD800x\uDC00")).toBe("⟨U+D800⟩x⟨U+DC00⟩");
    expect(visibleText("tag\u{E0041}, joiner\u200B, mark\uFEFF")).toBe(
      "tag⟨U+E0041⟩, joiner⟨U+200B⟩, mark⟨U+FEFF⟩",
    );
    const kept = "Zeile 1\nZeile\t2 · 注文 · العربية · ❤\uFE0F · 👩\u200D🚀";
    expect(visibleText(kept)).toBe(kept);
    expect(visibleText("x\uFE0F\u200D")).toBe("x⟨U+FE0F⟩⟨U+200D⟩");
  });

  test("makes every character of any text visible", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), (text) => {
        // eslint-disable-next-line no-control-regex -- the test looks for control characters
        expect(visibleText(text)).not.toMatch(/[\u0000-\u0008\u000B-\u001F\u202A-\u202E]/);
        expect(visibleText(text)).not.toMatch(/\p{Surrogate}/u);
      }),
    );
  });

  test("tokenText() has no line ends", () => {
    expect(tokenText("a\n\tb\r")).toBe("a↵⇥b␍");
  });

  test("columnsOf() counts wide characters twice and marks not at all", () => {
    expect(columnsOf("abc")).toBe(3);
    expect(columnsOf("注文")).toBe(4);
    expect(columnsOf("e\u0301")).toBe(1);
  });
});

describe("TokenTexts", () => {
  const header = (pieces: RowColumns["header"]["pieces"]): RowColumns["header"] => ({
    rolloutId: "r",
    groupId: "g",
    segment: 0,
    tokenCount: 0,
    promptLength: 0,
    turns: [],
    versions: [],
    metadata: {},
    outcome: "completed",
    stopReason: "user-left",
    ...(pieces !== undefined && { pieces }),
  });

  test("shows a character that several ids spell at the first of them", () => {
    const texts = new TokenTexts({
      header: header([
        [1, "a", "text"],
        [2, "f09f", "bytes"],
        [3, "9982", "bytes"],
        [4, "<|im_end|>", "special"],
      ]),
      ids: Int32Array.of(1, 2, 3, 2, 3, 4),
    });
    const shown = [0, 1, 2, 3, 4, 5].map((index) => texts.shownAt(index));
    expect(shown).toEqual(["a", "🙂", "·", "🙂", "·", "<|im_end|>"]);
    expect(texts.slice(0, 6)).toBe("a🙂🙂<|im_end|>");
    expect(texts.isSpecialAt(5)).toBe(true);
  });

  test("shows ids if there is no tokenizer", () => {
    const texts = new TokenTexts({ header: header(undefined), ids: Int32Array.of(7, 12) });
    expect(texts.hasText).toBe(false);
    expect([texts.shownAt(0), texts.shownAt(1)]).toEqual(["7", "12"]);
    expect(texts.slice(0, 2)).toBe("7 12");
  });

  test("handles ten thousand parts of characters that are never completed", () => {
    const count = 10_000;
    const texts = new TokenTexts({
      header: header([[2, "80", "bytes"]]),
      ids: new Int32Array(count).fill(2),
    });
    expect(texts.slice(0, 32)).toBe("\uFFFD".repeat(32));
  });
});

describe("searchTokens()", () => {
  const words = ["Order", " 90", "29", "\n", "order", " 9029"];
  const tokens = {
    tokenCount: words.length,
    ids: Int32Array.of(5, 6, 7, 8, 5, 9),
    textAt: (index: number) => words[index]!,
  };

  test("finds text over the ends of tokens", () => {
    expect(searchTokens(tokens, "ORDER 9029")).toEqual({
      count: 2,
      matches: [
        { start: 0, end: 3 },
        { start: 4, end: 6 },
      ],
    });
    expect(searchTokens(tokens, "nothing")).toEqual({ count: 0, matches: [] });
  });

  test("finds ids after #", () => {
    expect(searchTokens(tokens, "#5")).toEqual({
      count: 2,
      matches: [
        { start: 0, end: 1 },
        { start: 4, end: 5 },
      ],
    });
    expect(searchTokens(tokens, "# 6, 7")).toEqual({ count: 1, matches: [{ start: 1, end: 3 }] });
  });
});

describe("worstTokens()", () => {
  test("gives the largest values, the largest first, as sorting would", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 80 }),
        fc.integer({ min: 1, max: 9 }),
        (values, limit) => {
          const sorted = values
            .map((value, index) => ({ value, index }))
            .sort((left, right) => right.value - left.value || left.index - right.index)
            .slice(0, limit)
            .map(({ index }) => index);
          expect(worstTokens(values.keys(), (index) => values[index]!, limit)).toEqual(sorted);
        },
      ),
    );
  });
});

describe("heat", () => {
  test("steps lie at the probabilities that name them", () => {
    const steps = [0.95, 0.9, 0.89, 0.5, 0.2, 0.05, 0.01, 0.001].map((probability) =>
      heatOf(-Math.log(probability), surpriseSteps),
    );
    expect(steps).toEqual([0, 1, 1, 2, 3, 4, 5, 5]);
    expect(heatOf(Number.NaN, surpriseSteps)).toBe(5);
  });

  test("formatProbability() keeps small ones readable", () => {
    expect([0, -0.0001, -1, -7, -20].map(formatProbability)).toEqual([
      "100 %",
      ">99.9 %",
      "36.8 %",
      "0.091 %",
      "2.1e-7 %",
    ]);
  });
});

describe("histogram()", () => {
  test("counts every value once", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.integer({ min: -50, max: 5_000 }), fc.double({ min: 0, max: 2 }))),
        (values) => {
          const numbers = values.filter((value) => Number.isFinite(value));
          const bins = histogram(values, 12);
          expect(bins.reduce((sum, { count }) => sum + count, 0)).toBe(numbers.length);
          expect(bins.length).toBeLessThan(30);
        },
      ),
    );
  });

  test("gives integers bins of their own", () => {
    expect(histogram([0, 0, 1], 12)).toEqual([
      { from: 0, to: 1, count: 2, isLast: false },
      { from: 1, to: 2, count: 1, isLast: true },
    ]);
    expect(histogram([], 12)).toEqual([]);
    expect(histogram([3], 12)).toEqual([{ from: 3, to: 4, count: 1, isLast: true }]);
  });
});

test("firstDifference() finds the place from which lists differ", () => {
  expect(firstDifference(Int32Array.of(1, 2, 3), Int32Array.of(1, 2, 4))).toBe(2);
  expect(firstDifference(Int32Array.of(1, 2), Int32Array.of(1, 2, 4))).toBe(2);
  expect(firstDifference(Int32Array.of(1, 2), Int32Array.of(1, 2))).toBeUndefined();
});

test.each<Route>([
  { page: "runs", filter: "reward>0.5", order: "-date", pick: "a/b" },
  { page: "about", run: "a/b" },
  {
    page: "run",
    run: "a/b #1",
    filter: "reward<1 x",
    order: "-turns",
    view: "groups",
    search: "red rug",
    at: "g%1",
  },
  { page: "run", run: "a", filter: "", order: "", view: "episodes", search: "" },
  {
    page: "episode",
    run: "a",
    episode: "s/t/0#1",
    row: 2,
    turn: 3,
    token: 90_000,
    mode: "logprob",
  },
  { page: "episode", run: "a", episode: "?&%", row: 0, mode: "mask" },
  { page: "group", run: "a", group: "s/t/0", base: 3 },
  { page: "compare", run: "a", other: "b", order: "change" },
])("a link leads back to %j", (route) => {
  expect(readRoute(linkTo(route))).toEqual(route);
});

test("an unknown address leads to the runs", () => {
  expect(readRoute("#/episode/x")).toEqual({ page: "runs", filter: "", order: "" });
  expect(readRoute("#/%E0%A4%A/…?turn=-1")).toEqual({ page: "runs", filter: "", order: "" });
});

describe("the rows of one episode", () => {
  const row = (ids: readonly number[], turns: readonly (readonly [number, number, number])[]) => {
    const tokenIds = [...ids];
    const spans = turns.map(([turnIndex, start, end]) => ({ ...span, turnIndex, start, end }));
    const kinds = findKinds({ tokenIds, promptLength: spans[0]!.start, turns: spans }, undefined);
    const header = {
      rolloutId: "r",
      groupId: "g",
      segment: 0,
      tokenCount: ids.length,
      promptLength: 1,
      ...({ versions: [], metadata: {}, outcome: "completed", stopReason: "user-left" } as const),
      turns: spans,
    };
    return {
      ids: Int32Array.from(ids),
      kinds,
      trainedCount: kinds.filter((kind) => kind === 1).length,
      header,
    };
  };
  const main = row(
    [1, 2, 3, 4, 5, 6],
    [
      [0, 1, 3],
      [1, 4, 6],
    ],
  );
  const branch = row([1, 2, 3, 7, 8, 9], [[2, 4, 6]]);
  const other = row([5, 6, 7], [[3, 1, 3]]);

  const treeTurn = (place: Pick<TreeTurn, "parent" | "cause" | "turnIndex">): TreeTurn => ({
    promptTokenCount: 1,
    sampledTokenCount: 2,
    outputHash: "",
    isDelivered: true,
    model: "policy",
    ...place,
  });

  test("hang together as a tree", () => {
    expect(findBranches([main, branch, other])).toEqual([
      { row: 0, tokenCount: 6, trainedCount: 4, turnIndexes: [0, 1], sharedCount: 0 },
      {
        row: 1,
        tokenCount: 6,
        trainedCount: 2,
        turnIndexes: [2],
        parent: 0,
        sharedCount: 3,
        afterTurn: 0,
      },
      { row: 2, tokenCount: 3, trainedCount: 2, turnIndexes: [3], parent: 0, sharedCount: 0 },
    ]);
  });

  test("branch at the place that a gateway's run names, with the cause of each root", () => {
    // Turn 0 is continued twice, and the newest of its branches trains it; turn 3 starts again.
    const tree = [
      treeTurn({ cause: "first", turnIndex: 0 }),
      treeTurn({ parent: 0, turnIndex: 2 }),
      treeTurn({ parent: 0, turnIndex: 1 }),
      treeTurn({ cause: "tools-changed", turnIndex: 3 }),
    ];
    expect(findBranches([main, branch, other], { tree })).toEqual([
      {
        row: 0,
        tokenCount: 6,
        trainedCount: 4,
        turnIndexes: [0, 1],
        sharedCount: 0,
        cause: "first",
      },
      {
        row: 1,
        tokenCount: 6,
        trainedCount: 2,
        turnIndexes: [2],
        parent: 0,
        sharedCount: 3,
        afterTurn: 0,
      },
      {
        row: 2,
        tokenCount: 3,
        trainedCount: 2,
        turnIndexes: [3],
        sharedCount: 0,
        cause: "tools-changed",
      },
    ]);
  });

  test("branch from the last trained turn, if a turn that they share is not trained", () => {
    const tree = [
      treeTurn({ cause: "first", turnIndex: 0 }),
      treeTurn({ parent: 0 }),
      treeTurn({ parent: 1, turnIndex: 1 }),
      treeTurn({ parent: 1, turnIndex: 2 }),
      treeTurn({ cause: "new-conversation" }),
      treeTurn({ parent: 4, turnIndex: 3 }),
    ];
    const places = findBranches([main, branch, other], { tree }).map(
      ({ parent, afterTurn, cause }) => [parent, afterTurn, cause],
    );
    expect(places).toEqual([
      [undefined, undefined, "first"],
      [0, 0, undefined],
      [undefined, undefined, "new-conversation"],
    ]);
  });

  test("name causes in words, and show unknown ones unchanged", () => {
    expect(causeWords("tools-changed")).toBe("the same conversation with other tools");
    expect(causeWords("<b>")).toBe("<b>");
  });

  test("show tokens that another row trains as context", () => {
    markContext(branch, [main, other]);
    expect([...branch.kinds]).toEqual([0, 4, 4, 0, 1, 1]);
    markContext(main, [branch, other]);
    expect([...main.kinds]).toEqual([0, 1, 1, 2, 1, 1]);
  });
});

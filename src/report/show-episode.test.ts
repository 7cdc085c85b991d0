import { describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import type { Sample } from "../trajectory/sample.ts";
import { listEpisode, showEpisode } from "./show-episode.ts";
import { showTokens } from "./show-tokens.ts";
import { plainStyle, printable, shortened, terminalStyle } from "./text-style.ts";

const row = episodeRow({
  taskIndex: 7,
  sampleIndex: 1,
  reward: 0,
  rewardDetails: {
    difference: {
      state: [{ table: "orders", record: "#1", field: "", wanted: { a: 1 } }],
      moreState: 2,
      missingCalls: [],
      extraCalls: [{ name: "cancel", argumentsText: '{"id": 2.0}', error: "Error: not found" }],
      missingOutputs: [],
    },
  },
  troubles: [
    { party: "environment", code: "environment/exception", message: "Cannot dispose of it" },
  ],
  userUsage: { callCount: 2, inputTokenCount: 30, outputTokenCount: 3, costUsd: 0.01 },
  messages: [
    { role: "system", content: "Be kind." },
    { role: "user", content: "Cancel it.\u001B[2J" },
    { role: "assistant", content: "Done." },
  ],
  turns: [
    {
      turnIndex: 0,
      text: "Two\nlines",
      finish: "length",
      sampledTokenCount: 5,
      promptTokenCount: 40,
      attemptCounts: {},
      steps: [
        { source: "cancel", callId: "c", observation: "Error: no", result: "acted", isError: true },
        { source: "fly", callId: "d", observation: "No such tool", result: "refused" },
      ],
      engineMs: 12,
      environmentMs: 1,
    },
  ],
});

describe("showEpisode()", () => {
  test("shows messages, calls and answers, and the reason of the end", () => {
    expect(showEpisode(row, { style: plainStyle, full: false })).toBe(
      [
        "shop/test/7#1\n2 turns, 1 tool call, 20 sampled tokens, 0.5 s, seed 0",
        "system\n  Be kind.",
        "user\n  Cancel it.\\x1b[2J",
        "agent  turn 0: 5 tokens after 40, 12 ms, cut off by length\n  Two\n  lines",
        "cancel  error\n  Error: no",
        "fly  refused\n  No such tool",
        "completed (user-left), reward 0\n" +
          '  state: orders["#1"]: wanted {"a":1}, got nothing\n' +
          "  state: 2 more places\n" +
          '  not wanted: cancel {"id": 2.0} (Error: not found)\n' +
          "trouble that cost it nothing: environment/exception: Cannot dispose of it\n" +
          "the user's model: 2 calls, 30 tokens in, 3 out, $0.0100",
      ].join("\n\n"),
    );
  });

  test("names the failure of an episode that has no reward", () => {
    const failure = { party: "engine", code: "engine/timeout", message: "no reply" } as const;
    const failed = episodeRow({
      taskIndex: 0,
      sampleIndex: 0,
      outcome: "failed",
      stopReason: "failure",
      failure,
    });
    const text = showEpisode(failed, { style: plainStyle, full: false });
    expect(text).toContain(
      "failed (failure), reward none: nothing scored it\nengine/timeout: no reply",
    );
    expect(listEpisode(failed)).toBe("shop/test/0#0  reward –  failed (failure)  2 turns");
  });
});

describe("showTokens()", () => {
  const sample: Sample = {
    format: 1,
    rolloutId: "r",
    groupId: "g",
    taskId: "t",
    segment: 0,
    tokenIds: [72, 105, 33, 10, 79, 75],
    promptLength: 2,
    lossMask: [0, 0, 1, 0, 1, 1],
    logprobs: [0, 0, -1, 0, -0.5, -0.25],
    policyVersions: ["", "", "1", "", "1", "1"],
    turns: [],
    outcome: "completed",
    stopReason: "user-left",
    metadata: {},
  };
  const codec = { decode: async (ids: readonly number[]) => String.fromCodePoint(...ids) };

  test("marks sampled text", async () => {
    expect(await showTokens(sample, { codec, style: plainStyle, full: false })).toBe(
      "row 0: 6 tokens, 2 of the prompt, 3 sampled\n" +
        "0 to 1: not trained\nHi\n" +
        "2 to 2: sampled, mean logprob -1.000, lowest -1.000\n⟦!⟧\n" +
        "3 to 3: not trained\n\n\n" +
        "4 to 5: sampled, mean logprob -0.375, lowest -0.500\n⟦OK⟧",
    );
  });

  test("names the role of a row of several, without control characters", async () => {
    const headOf = async (role: string): Promise<string> => {
      const lineage = { role, row: 1, rowCount: 3, attemptTokenCount: 12 };
      const text = await showTokens(
        { ...sample, segment: 1, metadata: { lineage } },
        { style: plainStyle, full: false },
      );
      return text.slice(0, text.indexOf("\n"));
    };
    expect(await headOf("subagent")).toBe(
      "row 1 (2 of 3, sub-agent): 6 tokens, 2 of the prompt, 3 sampled",
    );
    expect(await headOf("\u001B[2J")).toContain("(2 of 3, \\x1b[2J)");
  });

  test("shows ids without a tokenizer", async () => {
    const text = await showTokens(sample, { style: terminalStyle, full: false });
    expect(text).toContain("\n72 105\n");
    expect(text).toContain("\u001B[32m79 75\u001B[0m");
  });
});

describe("text", () => {
  test("is cut in the middle, and safe for a terminal", () => {
    expect(shortened("abcdef", 6)).toBe("abcdef");
    expect(shortened("abcdefg", 4)).toBe("ab … (3 characters; --full shows them) … fg");
    expect(printable("a\tb\nc\u0007\u009B")).toBe("a\tb\nc\\x07\\x9b");
  });
});

describe("showEpisode() explains a reward", () => {
  const end = (rewardDetails: Readonly<Record<string, unknown>>, full = false): string =>
    showEpisode({ ...row, rewardDetails, troubles: [] }, { style: plainStyle, full })
      .split("\n\n")
      .at(-1)!
      .split("\n")
      .slice(1, -1)
      .join("\n");
  const difference = { state: [], missingCalls: [], extraCalls: [], missingOutputs: [] };

  test("by the environment's explanation", () => {
    expect(end({ closeness: 0.25 })).toBe('  details: {"closeness":0.25}');
    expect(end({})).toBe(
      "  why is not said: what score() returns as `wanted`, `outputs` or `details` is shown here",
    );
  });

  test("by its verdict and the components, each in one line", () => {
    const rewardComponents = {
      "said\nso": { value: 0.5, weight: 2 },
      calm: { value: 1, weight: 1 },
    };
    const parts = { success: false, rewardComponents, rewardDetails: {}, troubles: [] };
    const text = showEpisode({ ...row, ...parts }, { style: plainStyle, full: false });
    expect(text).toContain("\n  success: no\n  said so: 0.5, weight 2\n  calm: 1\n");
    expect(text).not.toContain("why is not said");
  });

  test("and lists all differences only on request", () => {
    const nothing = "  nothing differs from what was wanted";
    expect(end({ difference, closeness: 1 })).toBe(nothing);
    expect(end({ difference, closeness: 1 }, true)).toBe(`${nothing}\n  details: {"closeness":1}`);
  });

  test("and shows the calls of a turn without text", () => {
    const [turn] = row.turns;
    const calls = ["cancel", "fly"].map((source) => {
      const about = { callId: "c", arguments: '{"id": 2}', observation: "done" };
      return { source, ...about, result: "acted" as const };
    });
    const turns = [{ ...turn!, text: "", engineMs: 149.018_047_9, steps: calls }];
    expect(showEpisode({ ...row, turns }, { style: plainStyle, full: false })).toContain(
      "agent  turn 0: 5 tokens after 40, 149 ms, cut off by length\n" +
        '  cancel({"id": 2})\n  fly({"id": 2})\n\ncancel\n  done',
    );
  });

  test("and shows a silence as one, unless it ends the episode", () => {
    const [turn] = row.turns;
    const silent = { source: "user", callId: "c", observation: "", result: "acted" as const };
    const turns = [0, 1].map((turnIndex) => ({ ...turn!, turnIndex, steps: [silent] }));
    const silencesOf = (shown: EpisodeRow): number =>
      showEpisode(shown, { style: plainStyle, full: false }).split("user\n  (nothing)\n").length -
      1;
    expect(silencesOf({ ...row, turns })).toBe(1);
    expect(silencesOf({ ...row, turns, outcome: "truncated", stopReason: "max-turns" })).toBe(2);
  });
});

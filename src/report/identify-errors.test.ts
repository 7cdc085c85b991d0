import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import { RolloutError } from "../errors.ts";
import { Redactor } from "../secrets/redactor.ts";
import type { EpisodeRow } from "../run/folder/run-folder.ts";
import {
  scriptedChatModel,
  type ScriptedChatReply,
} from "../user/chat/scripted-chat-model.fixture.ts";
import { readAnswer } from "./fault-judge.ts";
import type { JudgedEpisode } from "./fault.ts";
import { identifyErrors } from "./identify-errors.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import { judgeContext } from "./judge-context.ts";
import { openStoredRun } from "./read-run.ts";

const { signal } = new AbortController();

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-errors-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const missed = (taskIndex: number, more: Partial<EpisodeRow> = {}) =>
  episodeRow({
    taskIndex,
    sampleIndex: 0,
    reward: 0,
    messages: [
      { role: "system", content: "the policy" },
      { role: "user", content: `please ${taskIndex}` },
      {
        role: "assistant",
        content: "",
        toolCalls: [{ id: "c", name: "cancel", argumentsText: '{"id": 1}' }],
      },
      { role: "tool", content: "ok", toolCallId: "c", name: "cancel" },
    ],
    ...more,
  });

async function storedRun(rows: readonly EpisodeRow[]) {
  const manifest = { format: 1, turnwright: "0", configuration: {}, found: {} };
  await writeFile(path.join(dir, "run.json"), JSON.stringify(manifest));
  const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join("");
  await writeFile(path.join(dir, "episodes.jsonl"), lines);
  return await openStoredRun(dir);
}

async function identify(
  rows: readonly EpisodeRow[],
  replies: readonly ScriptedChatReply[],
  { maxCount = Infinity, name = "scripted" } = {},
) {
  const judge = { ...scriptedChatModel(replies), name };
  const summary = await identifyErrors(await storedRun(rows), {
    judge,
    taskInfo: ({ taskIndex }) =>
      new Map([
        ["instruction", `want ${taskIndex}`],
        ["outputs", "10"],
      ]),
    concurrency: 1,
    maxCount,
    signal,
  });
  judge.assertDrained();
  return { summary, judge };
}

const agent = '{"answer": "agent", "reason": "left out {x}"}';

describe("identifyErrors()", () => {
  test("neither writes nor reports a secret that the judge repeats", async () => {
    const judgements: unknown[] = [];
    const run = await storedRun([missed(0)]);
    const summary = await identifyErrors(run, {
      judge: scriptedChatModel(['{"answer": "user", "reason": "says sk-of-the-judge"}']),
      taskInfo: () => new Map(),
      concurrency: 1,
      maxCount: 1,
      signal,
      redactor: new Redactor(["sk-of-the-judge"]),
      onJudged: (judged) => judgements.push(judged),
    });
    const names = ["errors.jsonl", "errors.json", "errors.tau-bench.json"];
    const texts = await Promise.all(names.map((name) => readFile(path.join(dir, name), "utf8")));
    const all = [...texts, JSON.stringify([judgements, summary])].join("\n");
    expect(all).toContain("says [redacted]");
    expect(all).not.toContain("sk-of-the-judge");
  });

  test("takes attempts at a repeated task in the order of their numbers", async () => {
    const rows = [1, 0].map((groupIndex) =>
      missed(0, { groupIndex, rolloutId: `shop/test/0~${groupIndex}#0` }),
    );
    await identify(rows, ['{"answer": "user", "reason": ""}'], { maxCount: 1 });
    const [line] = (await readFile(path.join(dir, "errors.jsonl"), "utf8")).split("\n");
    expect(JSON.parse(line!)).toMatchObject({ rolloutId: "shop/test/0~0#0" });
  });

  test("holds verdicts to their episodes while an earlier group ends, which moves their numbers", async () => {
    const rows = [0, 1].map((groupIndex) =>
      missed(0, { groupIndex, rolloutId: `shop/test/0~${groupIndex}#0` }),
    );
    await identify([rows[1]!], ['{"answer": "user", "reason": "of the later group"}']);
    const { summary } = await identify(
      [rows[1]!, rows[0]!],
      ['{"answer": "environment", "reason": "of the earlier group"}'],
    );
    expect(summary.byParty).toEqual({ user: 1, environment: 1 });
    const lines = (await readFile(path.join(dir, "errors.jsonl"), "utf8")).trim().split("\n");
    const judged = lines.map((line) => JSON.parse(line) as JudgedEpisode);
    expect(judged.map(({ rolloutId, fault }) => [rolloutId, fault?.reason])).toEqual([
      ["shop/test/0~1#0", "of the later group"],
      ["shop/test/0~0#0", "of the earlier group"],
    ]);
    for (const verdict of judged) expect(verdict).not.toHaveProperty("trial");
  });

  test("judges branches, too", async () => {
    const forkedFrom = { rolloutId: "shop/test/0#0", turnIndex: 1 };
    const rows = [missed(0), missed(0, { sampleIndex: 1, rolloutId: "shop/test/0#1", forkedFrom })];
    const verdict = '{"answer": "user", "reason": ""}';
    expect((await identify(rows, [verdict, verdict])).summary.judgedCount).toBe(2);
  });

  test("asks who is to blame and, for the agent, which error it made", async () => {
    const rows = [
      missed(0),
      episodeRow({ taskIndex: 1, sampleIndex: 0, reward: 1 }),
      missed(2),
      missed(3, { reward: undefined as never, outcome: "failed" }),
    ];
    const { summary, judge } = await identify(rows, [
      { text: `Let me see {…}.\n\`\`\`json\n${agent}\n\`\`\``, inputTokenCount: 10, costUsd: 0.5 },
      {
        text: '{"answer": "goal_partially_completed", "reason": "one of two"}',
        outputTokenCount: 4,
      },
      '{"reason": "asked for more", "answer": "User"}',
    ]);
    expect(summary).toEqual({
      format: 1,
      judge: "scripted",
      episodeCount: 2,
      judgedCount: 2,
      byParty: { agent: 1, user: 1 },
      byType: { goal_partially_completed: 1 },
      failures: {},
      inputTokenCount: 10,
      outputTokenCount: 4,
      costUsd: 0.5,
    });
    const first = judge.requests[0]?.messages[1]?.content ?? "";
    for (const part of [
      "want 0",
      "please 0",
      'Agent calls cancel {"id": 1}',
      "cancel answers: ok",
    ]) {
      expect(first).toContain(part);
    }
    expect(first).not.toContain("the policy");
    const judged = (await readFile(path.join(dir, "errors.jsonl"), "utf8")).trim().split("\n");
    expect(JSON.parse(judged[0] ?? "")).toEqual({
      rolloutId: "shop/test/0#0",
      taskId: "shop/test/0",
      taskIndex: 0,
      reward: 0,
      fault: {
        party: "agent",
        reason: "left out {x}",
        type: "goal_partially_completed",
        typeReason: "one of two",
      },
      usage: { callCount: 2, inputTokenCount: 10, outputTokenCount: 4, costUsd: 0.5 },
      judge: "scripted",
      episodeHash: hashRow(rows[0]),
    });
    expect(JSON.parse(await readFile(path.join(dir, "errors.tau-bench.json"), "utf8"))).toEqual({
      fault_assignment_analysis: [
        { task_id: 0, author: "agent", description: "left out {x}" },
        { task_id: 2, author: "user", description: "asked for more" },
      ],
      fault_type_analysis: [
        { task_id: 0, fault_type: "goal_partially_completed", description: "one of two" },
      ],
    });
  });

  test("keeps a judge's failures typed, and asks again in the next call only for those", async () => {
    const rows = [missed(0), missed(1)];
    const timeout = new RolloutError("grader/timeout", "no reply");
    const { summary } = await identify(rows, [timeout, '{"answer": "environment", "reason": ""}']);
    expect(summary).toMatchObject({
      judgedCount: 1,
      byParty: { environment: 1 },
      failures: { "grader/timeout": 1 },
    });
    const again = await identify(rows, ["agent", "other"]);
    expect(again.summary).toMatchObject({
      judgedCount: 2,
      byParty: { environment: 1, agent: 1 },
      byType: { other: 1 },
      failures: {},
    });
  });

  test("counts for each judge only its own verdicts; the others stay in the file", async () => {
    const rows = [missed(0), missed(1)];
    const says = (party: string) => `{"answer": "${party}", "reason": "it seems so"}`;
    await identify(rows, [says("user"), says("user")], { name: "first" });
    const other = await identify(rows, [says("environment"), says("environment")], {
      name: "second",
    });
    expect(other.summary).toMatchObject({ judge: "second", byParty: { environment: 2 } });
    const tauBench = JSON.parse(await readFile(path.join(dir, "errors.tau-bench.json"), "utf8"));
    expect(tauBench.fault_assignment_analysis).toEqual([
      { task_id: 0, author: "environment", description: "it seems so" },
      { task_id: 1, author: "environment", description: "it seems so" },
    ]);
    // The first judge has judged all already.
    const again = await identify(rows, [], { name: "first" });
    expect(again.summary).toMatchObject({ judge: "first", byParty: { user: 2 } });
    const lines = (await readFile(path.join(dir, "errors.jsonl"), "utf8")).trim().split("\n");
    const judges = lines.map((line) => (JSON.parse(line) as { judge: string }).judge);
    expect(judges).toEqual(["first", "first", "second", "second"]);
  });

  test("judges an episode again after it was played again", async () => {
    const says = (party: string) => `{"answer": "${party}", "reason": ""}`;
    await identify([missed(0), missed(1)], [says("user"), says("user")]);
    const played = missed(1, { messages: [{ role: "user", content: "another story" }] });
    const { summary } = await identify([missed(0), played], [says("environment")]);
    expect(summary.byParty).toEqual({ user: 1, environment: 1 });
  });

  test("stops asking after two unreadable answers", async () => {
    const { summary, judge } = await identify([missed(0)], ["perhaps", '{"answer": "nobody"}']);
    expect(summary.failures).toEqual({ "grader/bad-reply": 1 });
    expect(judge.requests.map(({ temperature }) => temperature)).toEqual([0, 1]);
  });

  test("judges the first of them by task if only some are requested", async () => {
    const { summary, judge } = await identify(
      [missed(5), missed(1)],
      ['{"answer": "user", "reason": ""}'],
      { maxCount: 1 },
    );
    expect(summary.episodeCount).toBe(1);
    expect(judge.requests[0]?.messages[1]?.content).toContain("want 1");
  });

  test("stops on request", async () => {
    const run = await storedRun([missed(0)]);
    const judge = scriptedChatModel([]);
    const stopped = identifyErrors(run, {
      judge,
      taskInfo: () => new Map(),
      concurrency: 2,
      maxCount: Infinity,
      signal: AbortSignal.abort(new Error("enough")),
    });
    await expect(stopped).rejects.toThrow("enough");
  });
});

describe("judgeContext()", () => {
  test("shows what differs, and cuts long results", () => {
    const difference = { state: [], missingCalls: [], extraCalls: [], missingOutputs: ["10"] };
    const messages = [
      { role: "tool", content: "x".repeat(5_000), toolCallId: "c", name: "search" },
    ] as const;
    const row = missed(0, { rewardDetails: { difference }, messages });
    const context = judgeContext(row, new Map());
    expect(context).toContain('not said: "10"');
    expect(context).toContain("[… 3000 characters left out …]");
  });

  test("shows the score if the differences are unknown", () => {
    const context = judgeContext(missed(0, { rewardDetails: { missing: 2 } }), new Map());
    expect(context).toContain('{"reward":0,"missing":2}');
  });
});

describe("readAnswer()", () => {
  test.each([
    ['{"answer": "user", "reason": "a"} then {"answer": "agent", "reason": "b"}', "agent"],
    ['{"reason": "a } b", "answer": "user"}', "user"],
    [" Agent ", "agent"],
    ['{"answer": "both"}', undefined],
    ["the user or the agent", undefined],
    ["", undefined],
  ])("reads %s", (text, choice) => {
    expect(readAnswer(text, ["user", "agent"])?.choice).toBe(choice);
  });
});

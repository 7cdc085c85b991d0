import { expect, test } from "vitest";
import { episodeRow } from "../episode/episode-row.fixture.ts";
import type { RunFolder } from "../run/folder/run-folder.ts";
import { RunTally } from "../run/run-progress.ts";
import { describeTroubles, nextStep, printRunSummary } from "./run-summary.ts";

const folder = {
  name: "runs/a",
  samplesFile: "/home/me/runs/a/samples.jsonl",
  slimeFile: undefined,
} as unknown as RunFolder;

test("printRunSummary() shows next to the mean how many episodes it excludes, and why", () => {
  const tally = new RunTally({ planned: 6, now: () => 0 });
  const failure = (party: "engine" | "user") => ({
    outcome: "failed" as const,
    stopReason: "failure" as const,
    failure: { party, code: `${party}/timeout` as const, message: "no answer" },
  });
  const rows = [
    { reward: 1 },
    { reward: 0.5 },
    { outcome: "truncated" as const, stopReason: "deadline" as const },
    failure("engine"),
    failure("engine"),
    failure("user"),
  ];
  rows.forEach((row, taskIndex) => {
    tally.episodeStarted();
    tally.episodeFinished(episodeRow({ taskIndex, sampleIndex: 0, ...row }));
  });
  const progress = tally.progress();
  expect(progress.unscored).toEqual({
    "truncated/deadline": 1,
    "failed/engine": 2,
    "failed/user": 1,
  });
  const printed = printRunSummary({ progress, end: "finished" }, folder);
  expect(printed).toContain(
    "0.750 mean over 2 scored episodes; 4 left out: truncated/deadline ×1, " +
      "failed/engine ×2, failed/user ×1\n",
  );
  expect(printed).toMatch(
    /\n {2}failures +engine\/timeout ×2, user\/timeout ×1; --retry-failed plays them again\n/,
  );
});

test("printRunSummary() lists the unenforced features and the refused requests of an agent", () => {
  const tally = new RunTally({ planned: 2, now: () => 0 });
  [
    { turnCount: 2, unenforced: { "tool_choice required": 2 } },
    { refused: { "Cannot read n: expected 1": 1 }, unenforced: { "tool_choice required": 1 } },
  ].forEach((gateway, taskIndex) => {
    tally.episodeResumed(episodeRow({ taskIndex, sampleIndex: 0, gateway }));
  });
  const lines = printRunSummary({ progress: tally.progress(), end: "finished" }, folder).split(
    "\n",
  );
  expect(lines.filter((line) => /^ {2}(?:unenforced|refused) /.test(line))).toEqual([
    "  unenforced  tool_choice required ×3",
    "  refused     Cannot read n: expected 1 ×1",
  ]);
});

test("printRunSummary() reports trouble that cost no episode", () => {
  const tally = new RunTally({ planned: 2, now: () => 0 });
  const trouble = (message: string) => ({
    party: "environment" as const,
    code: "environment/exception" as const,
    message,
  });
  const troubles = [trouble("Cannot dispose of it"), trouble("Cannot dispose of the other")];
  [{ reward: 1 }, { reward: 1, troubles }].forEach((row, taskIndex) => {
    tally.episodeStarted();
    tally.episodeFinished(episodeRow({ taskIndex, sampleIndex: 0, ...row }));
  });
  const progress = tally.progress();
  expect(progress.outcomes).toEqual({ completed: 2, truncated: 0, failed: 0 });
  expect(printRunSummary({ progress, end: "finished" }, folder)).toContain(
    "  troubles    environment/exception ×2; no episode was lost to them\n" +
      "  the first   shop/test/1#0: Cannot dispose of it\n",
  );
  expect(describeTroubles(progress)).toBe(
    "troubles that no episode was lost to: environment/exception ×2; the first: shop/test/1#0: " +
      "Cannot dispose of it",
  );
  expect(describeTroubles(new RunTally({ now: () => 0 }).progress())).toBeUndefined();
});

test("printRunSummary() counts the ended episodes if their number is open", () => {
  const tally = new RunTally({ now: () => 0 });
  tally.episodeStarted();
  tally.episodeFinished(episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 1 }));
  const printed = printRunSummary({ progress: tally.progress(), end: "interrupted" }, folder);
  expect(printed).toMatch(/^ *episodes +1: 1 completed, 0 truncated, 0 failed$/m);
});

test("printRunSummary() separates the figures of this start, and gives no speed without samples", () => {
  const tally = new RunTally({ planned: 1, now: () => 0 });
  tally.episodeResumed(episodeRow({ taskIndex: 0, sampleIndex: 0, reward: 1 }));
  const printed = printRunSummary({ progress: tally.progress(), end: "finished" }, folder);
  expect(printed).toMatch(/\n {2}tokens +20 sampled \(trained\), 80 masked\n/);
  expect(printed).toMatch(/\n {2}time +0\.0 s \(this start\)\n/);
});

test("printRunSummary() says how many rows a teacher had scored before, and the size of columns", () => {
  const progress = new RunTally({ planned: 1, now: () => 0 }).progress();
  const teacher = {
    name: "big",
    rowCount: 8,
    scoredCount: 2,
    knownCount: 6,
    tokenCount: 90,
    unreadableCount: 0,
    leftOutCount: 0,
    leftOut: [],
  };
  const written = (columnBytes: number) => {
    const manifest = { found: { columns: { topLogprobs: { count: 3 } } } };
    const own = { ...folder, columnBytes, manifest } as unknown as RunFolder;
    return printRunSummary({ progress, end: "finished" }, own, teacher);
  };
  expect(written(5000)).toContain("\n  teacher   big: 2 rows scored, 6 before\n");
  expect(written(5000)).toContain("\n  columns   topLogprobs: 5.0 kB in runs/a/columns\n");
  expect(written(1.25e9)).toContain("topLogprobs: 1.3 GB in");
});

test.each([
  ["finished", "\nNext, look at it: npx turnwright view runs/a\n"],
  ["interrupted", ""],
  ["too-many-failures", ""],
] as const)("the next step of a run that is %s", (end, text) => {
  expect(nextStep(end, folder).replace("npm run --silent turnwright --", "npx turnwright")).toBe(
    text,
  );
});

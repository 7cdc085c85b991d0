import { expect, test } from "vitest";
import { checkText } from "./print-environment-check.ts";

const check = {
  problems: [
    {
      severity: "error",
      message: "task desk/test/0: it is \u001B[2Jgone",
      where: "task desk/test/0",
      what: "it is \u001B[2Jgone",
      remedy: "expected no exception",
      task: "desk/test/0",
    },
    {
      severity: "warning",
      message: "score() wants `loan`; did you mean `loans`?",
      where: "the environment",
      what: "score() wants `loan`",
      remedy: "did you mean `loans`?",
    },
  ],
  errorCount: 1,
  warningCount: 3,
  taskCount: 6,
  totalTaskCount: 10_100,
  toolCount: 2,
  episodeCount: 1_302,
  stepCount: 1_400,
  callCount: 1_246,
} as const;

test("checkText() gives a pipe a line for each problem, and one with the counts", () => {
  expect(checkText("desk", check, { isTerminal: false })).toBe(
    "error: task desk/test/0: it is \\x1b[2Jgone\n" +
      "warning: score() wants `loan`; did you mean `loans`?\n" +
      "2 more problems are not listed\n" +
      "desk: 6 of 10,100 tasks (--tasks N|all plays more), 1,302 episodes, 1,400 steps; 1 error, 3 warnings\n",
  );
});

test("checkText() ends with a table on a terminal", () => {
  const text = checkText("desk", { ...check, problems: [] }, { isTerminal: true });
  // eslint-disable-next-line no-control-regex -- the colours are what is left out
  expect(text.replaceAll(/\u001B\[\d+m/g, "").split("\n")).toEqual([
    "4 more problems are not listed",
    "",
    "environment        tasks  tools  calls tried  errors  warnings",
    "desk         6 of 10,100      2        1,246       1         3",
    "--tasks N|all plays more",
    "",
  ]);
});

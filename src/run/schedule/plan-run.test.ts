import { describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { lamps } from "../lamp-run.fixture.ts";
import { parseTaskIndexes, planRun } from "./plan-run.ts";

describe("parseTaskIndexes()", () => {
  const scope = { split: "test", size: 115 };

  test.each([
    ["0-3", [0, 1, 2, 3]],
    ["7", [7]],
    ["5,0-2, 5", [5, 0, 1, 2]],
    ["114", [114]],
  ])("reads %s", (text, indexes) => {
    expect(parseTaskIndexes(text, scope)).toEqual(indexes);
  });

  test("reads all", () => {
    expect(parseTaskIndexes("all", { split: "dev", size: 3 })).toEqual([0, 1, 2]);
  });

  test.each([
    ["115", 'Cannot play task 115: split "test" has 115 tasks, expected 0 to 114'],
    ["100-200", "Cannot play task 200"],
    ["4-2", "the range 4-2 does not rise"],
    ["1;2", '"1;2" is neither a number nor a range'],
    ["", '"" is neither a number nor a range'],
    ["-1", '"-1" is neither a number nor a range'],
  ])("refuses %s", (text, message) => {
    expect(() => parseTaskIndexes(text, scope)).toThrow(message);
  });

  test("counts one task as one", () => {
    expect(() => parseTaskIndexes("7", { split: "test", size: 1 })).toThrow(
      'Cannot play task 7: split "test" has 1 task, expected 0',
    );
  });
});

describe("planRun()", () => {
  const scope = { split: "test", taskIndexes: [3, 1], sampleCount: 2, seed: 10 };

  test("knows the number of attempts, and draws a task on demand", () => {
    const drawn: number[] = [];
    const plan = planRun(
      lamps(5, (index) => drawn.push(index)),
      scope,
    );
    expect(plan.length).toBe(4);
    expect([0, 1, 2, 3].map((index) => plan.placeAt(index))).toEqual([
      { taskIndex: 3, sampleIndex: 0 },
      { taskIndex: 3, sampleIndex: 1 },
      { taskIndex: 1, sampleIndex: 0 },
      { taskIndex: 1, sampleIndex: 1 },
    ]);
    expect(drawn).toEqual([]);
    expect(plan.at(3)).toMatchObject({
      rolloutId: "lamp/test/1#1",
      groupId: "lamp/test/1",
      sampleIndex: 1,
      groupIndex: 1,
      index: 3,
      seed: 13,
    });
    expect(drawn).toEqual([1]);
    const [first, second] = plan;
    expect(first!.task).toBe(second!.task);
    expect(drawn).toEqual([1, 3]);
  });

  test.each([
    [{ split: "constructor" }, 'Cannot find split "constructor" of lamp: expected one of test'],
    [{ split: "dev" }, 'Cannot find split "dev" of lamp: expected one of test'],
    [{ taskIndexes: [5] }, 'Cannot play task 5: split "test" has 5 tasks, expected 0 to 4'],
    [{ taskIndexes: [-1] }, "Cannot play task -1"],
    [{ taskIndexes: [0.5] }, "Cannot play task 0.5"],
    [{ taskIndexes: [1, 1] }, 'Cannot play task 1 of "test": it is listed twice'],
  ])("refuses %j before anything is played", (wrong, message) => {
    expect(() => planRun(lamps(5), { ...scope, ...wrong })).toThrow(message);
  });

  test.each<[string, () => unknown, string]>([
    [
      "throws",
      () => {
        throw new TypeError("no such row");
      },
      'Cannot play lamp: its task 3 of "test" cannot be drawn: no such row',
    ],
    [
      "returns nothing",
      () => undefined,
      'Cannot play lamp: its task 3 of "test" is nothing (a forgotten return?), expected a task with an id',
    ],
    [
      "returns one without an id",
      () => ({ split: "test", index: 3 }),
      'Cannot play lamp: its task 3 of "test" has no id, expected a text',
    ],
  ])("names the task if drawing it %s", (_, draw, message) => {
    const environment = { ...lamps(5), task: draw as never };
    expect(() => planRun(environment, scope).at(0)).toThrow(new UsageError(message));
  });

  test("refuses an environment that gives another task than it is asked for", () => {
    const environment = lamps(5);
    const confused = { ...environment, task: () => environment.task("test", 0) };
    expect(() => planRun(confused, scope).at(0)).toThrow(
      'Cannot play lamp: its task 3 of "test" says that it is task 0 of "test"',
    );
  });
});

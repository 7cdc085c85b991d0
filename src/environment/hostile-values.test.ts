import { expect, test } from "vitest";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { PyDict } from "../../packages/python-values/src/value.ts";
import { defineEnvironment } from "./define-environment.ts";
import { defineTool } from "./define-tool.ts";
import { playActions } from "./play-actions.ts";
import { readTasks } from "./read-tasks.ts";

const { signal } = new AbortController();

/** The state and the agent's observation after one call that puts its arguments into the state. */
async function keep(given: string, initialState: object = {}) {
  let reached: object = {};
  const tool = defineTool<Readonly<Record<string, unknown>>, Record<string, unknown>>({
    name: "keep",
    description: "Keeps its arguments.",
    parameters: { type: "object" },
    execute(args, state) {
      state["kept"] = args;
      return args;
    },
  });
  const environment = defineEnvironment({
    name: "keeper",
    tasks: [{ instruction: "Go." }],
    initialState: () => initialState as Record<string, unknown>,
    policy: "Keep.",
    tools: [tool],
    score(state) {
      reached = state;
      return 1;
    },
  });
  const task = environment.task("test", 0);
  const action = {
    type: "call",
    name: "keep",
    arguments: parsePythonJson(given) as PyDict,
  } as const;
  const { user } = environment;
  const { steps } = await playActions(environment, { task, user, actions: [action] }, { signal });
  return { observation: steps[0]!.observation, reached: JSON.stringify(reached) };
}

test("a member __proto__ passes from the call through the state to the score like any other", async () => {
  const given = '{"__proto__":{"x":1},"constructor":2,"a":[{"__proto__":3}]}';
  expect(await keep(given)).toEqual({ observation: given, reached: `{"kept":${given}}` });
  const initial = JSON.parse('{"__proto__":{"y":1},"b":{"__proto__":null}}') as object;
  expect(await keep('{"c":1}', initial)).toEqual({
    observation: '{"c":1}',
    reached: '{"__proto__":{"y":1},"b":{"__proto__":null},"kept":{"c":1}}',
  });
});

test("a number that JavaScript cannot represent is answered as the model's mistake", async () => {
  const { observation, reached } = await keep('{"a":{"id":9007199254740993}}');
  expect(observation).toContain("Error: a.id is too large a number");
  expect(reached).toBe("{}");
});

test("rows of a data set with large integers are tasks with numbers, or refused with their place", async () => {
  const row = { instruction: "Go.", id: 7n, deep: [{ n: -9007199254740991n }] };
  expect(await readTasks([row])).toEqual([
    { instruction: "Go.", id: 7, deep: [{ n: -9007199254740991 }] },
  ]);
  await expect(readTasks([row, { ...row, deep: [{ n: 2n ** 53n }] }])).rejects.toThrow(
    "Cannot read the tasks: task 1: deep[0].n is 9007199254740992, which JavaScript's numbers cannot represent",
  );
});

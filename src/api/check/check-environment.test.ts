import { describe, expect, test } from "vitest";
import desk from "../../../examples/library-desk.ts";
import { createEnvironment, createUser } from "../../../examples/lamps.ts";
import { createStorefront, createStorefrontUser } from "../../../environments/storefront/index.ts";
import { defineEnvironment } from "../../environment/define-environment.ts";
import type { Environment, World } from "../../environment/environment.ts";
import { refuse } from "../../environment/refuse.ts";
import { checkEnvironment } from "./check-environment.ts";

test.each([
  ["the library desk", desk as Environment, undefined],
  ["the lamps", createEnvironment() as Environment, createUser()],
  ["the shop", createStorefront() as Environment, createStorefrontUser()],
])("checkEnvironment() finds no error in %s", async (_, environment, user) => {
  const { problems, taskCount, stepCount } = await checkEnvironment(environment, {
    ...(user !== undefined && { user }),
    taskCount: 2,
  });
  expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
  expect(taskCount).toBeGreaterThanOrEqual(2);
  expect(stepCount).toBeGreaterThan(50);
});

test("checkEnvironment() finds no error in a state with binary data", async () => {
  const environment = defineEnvironment({
    name: "grid",
    tasks: [{ instruction: "Set it." }],
    policy: "Set what is asked for.",
    initialState: () => ({ cells: new Uint8Array(4), note: Buffer.from("abc") }),
    tools: {
      set: {
        description: "Set the first cell.",
        execute(_, { cells }) {
          cells[0] = 1;
          return cells[0] === 1 ? refuse("it is set") : "set";
        },
      },
    },
    score: ({ cells }) => cells[0] === 1,
  });
  const { problems } = await checkEnvironment(environment);
  expect(problems.filter(({ severity }) => severity === "error")).toEqual([]);
});

/** The lamps, with a part of the environment or its worlds replaced. */
function broken(
  change: Partial<Environment>,
  inWorld: (world: World) => Partial<World> = () => ({}),
): Environment {
  const lamps = createEnvironment() as Environment;
  return {
    ...lamps,
    async open(task, options) {
      const world = await lamps.open(task, options);
      return {
        begin: (given) => world.begin(given),
        step: (action, given) => world.step(action, given),
        score: (given) => world.score(given),
        userUsage: () => world.userUsage(),
        [Symbol.asyncDispose]: async () => {
          await world[Symbol.asyncDispose]();
        },
        ...inWorld(world),
      };
    },
    ...change,
  };
}

const lamps = createEnvironment() as Environment;
let drawn = 0;
let shared = 0;

describe("checkEnvironment() says what would spoil a run:", () => {
  test.each<readonly [string, Environment, string]>([
    [
      "a policy text that is none",
      broken({ policyText: 5 as never }),
      "its policyText is 5, expected a text",
    ],
    [
      "a tool that throws for a wrong argument",
      broken({}, (world) => ({
        async step(action, given) {
          if (action.type === "call" && action.arguments.get("level") === null) {
            throw new TypeError("level is null");
          }
          return await world.step(action, given);
        },
      })),
      "task lamps/train/0: an agent that calls set_lamp with level: null: Cannot answer tool set_lamp: level is null",
    ],
    [
      "a forgotten return",
      broken({}, (world) => ({
        step: async (action, given) =>
          action.type === "say" ? await world.step(action, given) : (undefined as never),
      })),
      "task lamps/train/0: an agent that calls a tool that there is not: Cannot use the answer of world.step() for tool " +
        "no_such_tool: it returned nothing (a forgotten return?), expected a Step",
    ],
    [
      "a reward that is none",
      broken({}, () => ({ score: async () => ({ reward: Number.NaN, details: {} }) })),
      "task lamps/train/0: an agent that does nothing: Cannot use the answer of world.score(): reward is NaN, expected a finite number",
    ],
    [
      "a world that cannot be disposed of",
      broken({}, () => ({
        [Symbol.asyncDispose]: async () => {
          throw new Error("it is gone");
        },
      })),
      "task lamps/train/0: an agent that does nothing: Cannot dispose of the world of task lamps/train/0: it is gone",
    ],
    [
      "tasks that are drawn by chance",
      broken({
        task: (split, index) => ({ ...lamps.task(split, index), instruction: `${(drawn += 1)}` }),
      }),
      'task("train", 0): it is another one each time, expected a function of split and index',
    ],
    [
      "an index out of range that is a task",
      broken({ task: (split) => lamps.task(split === "test" ? split : "train", 0) }),
      'task("train", 10000) is out of range and gives a task, expected a UsageError',
    ],
    [
      "a state that all episodes share",
      broken({}, () => ({ score: async () => ({ reward: -(shared += 1), details: {} }) })),
      "task lamps/train/0: an agent that does nothing is scored differently after others have played",
    ],
    [
      "answers that differ although they are declared repeatable",
      broken({ repeatable: true }, () => ({
        score: async () => ({ reward: -(shared += 1), details: {} }),
      })),
      "task lamps/train/0: an agent that asks the user until they leave: the episode is scored differently the second time",
    ],
    [
      "a refusal that changes the state",
      broken({}, () => ({ stateHash: async () => `${(shared += 1)}` })),
      "task lamps/train/0: an agent that calls a tool that there is not: tool no_such_tool says that it refused, and has changed the state all the same, expected no change",
    ],
    [
      "two tools of a name",
      broken({ tools: [...lamps.tools, ...lamps.tools] }),
      "two tools are called list_lamps, expected names of their own",
    ],
  ])("%s", async (_, environment, message) => {
    const { problems } = await checkEnvironment(environment, { taskCount: 1 });
    const errors = problems.filter(({ severity }) => severity === "error");
    expect(errors.map((problem) => problem.message.slice(0, message.length))).toContain(message);
  });

  test("a tool that hangs, with a single wait", async () => {
    // Each wait is over once all else that can happen has happened.
    let isHanging = false;
    const clock = {
      now: () => 0,
      after(_ms: number, expire: () => void) {
        const check = setInterval(() => isHanging && expire(), 1);
        return () => clearInterval(check);
      },
    };
    const hanging = broken({}, (world) => ({
      async step(action, given) {
        if (action.type !== "call" || action.name !== "set_lamp")
          return await world.step(action, given);
        isHanging = true;
        return await new Promise<never>(() => undefined);
      },
    }));
    const { problems } = await checkEnvironment(hanging, { taskCount: 1, clock });
    expect(problems).toEqual([
      {
        severity: "error",
        message:
          "task lamps/train/0: an agent that calls set_lamp without arguments: Cannot answer tool set_lamp: no answer within 10000 ms",
        where: "task lamps/train/0: an agent that calls set_lamp without arguments",
        what: "Cannot answer tool set_lamp: no answer within 10000 ms",
        remedy: "expected an answer within the time limit (--timeout)",
        task: "lamps/train/0",
      },
    ]);
  });

  test("a reward without any action", async () => {
    const generous = defineEnvironment({
      name: "generous",
      tasks: [{ instruction: "Hello." }],
      policy: "",
      tools: {},
      score: () => 1,
    });
    expect((await checkEnvironment(generous as Environment)).problems).toEqual([
      {
        severity: "warning",
        message:
          "an agent that does nothing is rewarded in 1 of 1 tasks, expected that in few: it is what a policy learns first",
        where: "the environment",
        what: "an agent that does nothing is rewarded in 1 of 1 tasks",
        remedy: "expected that in few: it is what a policy learns first",
      },
    ]);
  });

  test("answers and scores that differ although nothing is said about them", async () => {
    let rolled = 0;
    const dice = defineEnvironment({
      name: "dice",
      tasks: [{ instruction: "Roll." }],
      policy: "",
      tools: { roll: { description: "Roll.", execute: () => (rolled += 1) } },
      score: () => 0,
    });
    expect((await checkEnvironment(dice)).problems).toMatchObject([
      {
        severity: "warning",
        task: "dice/test/0",
        message: expect.stringMatching(
          /^task dice\/test\/0: an agent that calls every tool with what fits its schema: tool roll answers differently the second time \("\d", then "\d"\), expected the same/,
        ) as string,
      },
    ]);
  });

  test("wanted members that no state had", async () => {
    const desk = defineEnvironment({
      name: "desk",
      tasks: [{ instruction: "Lend." }],
      policy: "",
      initialState: (): { loans: object; loan?: object; Fines?: object; late?: number } => ({
        loans: {},
      }),
      tools: {
        fine: {
          description: "Fine.",
          execute(_, state) {
            state.late = 1;
            return "fined";
          },
        },
      },
      score: () => ({ wanted: { loans: {}, loan: {}, Fines: {}, late: 1 } }),
    });
    const { problems } = await checkEnvironment(desk);
    expect(problems).toEqual([
      {
        severity: "warning",
        task: "desk/test/0",
        message:
          "task desk/test/0: score() wants `loan`, and no state had such a member; did you mean `loans`?",
        where: "task desk/test/0",
        what: "score() wants `loan`, and no state had such a member",
        remedy: "did you mean `loans`?",
      },
      {
        severity: "warning",
        task: "desk/test/0",
        message:
          "task desk/test/0: score() wants `Fines`, and no state had such a member; expected a member that a " +
          "state has (loans, late), or one that a tool adds",
        where: "task desk/test/0",
        what: "score() wants `Fines`, and no state had such a member",
        remedy: "expected a member that a state has (loans, late), or one that a tool adds",
      },
    ]);
  });

  test("rewards of turns are scored as in a run, each action as a turn", async () => {
    const counted = defineEnvironment({
      name: "counted",
      tasks: [{ instruction: "Go." }],
      policy: "",
      tools: { go: { description: "Go.", execute: () => "gone" } },
      score: (_state, _task, { turns = [] }) => ({ turnRewards: turns.map(() => 0) }),
    });
    expect((await checkEnvironment(counted)).problems).toEqual([]);
  });

  test("reports problems that all tasks share once, with their number", async () => {
    const clumsy = defineEnvironment({
      name: "clumsy",
      policy: "",
      score: () => 0,
      tasks: ["One.", "Two.", "Three.", "Four."].map((instruction) => ({ instruction })),
      tools: { forget: { description: "Forget.", execute: () => undefined } },
    });
    const { problems, ...counts } = await checkEnvironment(clumsy, {
      taskCount: "all",
    });
    expect(counts).toMatchObject({ taskCount: 4, totalTaskCount: 4 });
    expect(problems.map(({ message }) => message)).toEqual([
      expect.stringMatching(
        /^task clumsy\/test\/0: an agent that calls forget without arguments: .* in task clumsy\/test\/0: it returned nothing .*; the same in 3 more of the tasks$/,
      ),
    ]);
  });
});

import { describe, expect, test } from "vitest";
import { z } from "zod";
import { createToolCallingAgent } from "../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../agent/tool-use-policy.ts";
import { defaultLimits } from "../episode/limits.ts";
import { playEpisode } from "../episode/play-episode.ts";
import type { Episode } from "../episode/episode.ts";
import { RolloutError, UsageError } from "../errors.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { toPyValue, type PyDict } from "../../packages/python-values/src/value.ts";
import { characterIds, createCharacterRenderer } from "../testing/character-renderer.ts";
import { createScriptedEngine } from "../testing/scripted-engine.ts";
import { defineEnvironment, type DefinedEnvironment } from "./define-environment.ts";
import type { MadeTurn } from "./action-log.ts";
import { defineTool } from "./define-tool.ts";
import type { Action } from "./environment.ts";
import { playActions } from "./play-actions.ts";
import { refuse } from "./refuse.ts";

const { signal } = new AbortController();

const shelf = { books: { Emma: { copies: 2 }, Dune: { copies: 1 } }, log: [] as string[] };

/** A shelf that books are taken from. */
function shelves(parts: object = {}): DefinedEnvironment<{ instruction: string; id?: string }> {
  const options = {
    name: "shelf",
    tasks: [{ instruction: "Take Emma." }, { instruction: "Take Dune." }],
    initialState: () => shelf,
    policy: "Take what is asked for.",
    tools: {
      take: {
        description: "Take a book.",
        parameters: z.object({ book: z.enum(["Emma", "Dune"]), count: z.int().default(1) }),
        execute: (
          { book, count }: { book: "Emma" | "Dune"; count: number },
          state: typeof shelf,
        ) => {
          state.books[book].copies -= count;
          if (state.books[book].copies < 0) refuse(`no ${book} is left`);
          state.log.push(book);
          return { left: state.books[book].copies };
        },
      },
    },
    score: (state: typeof shelf) => ({ wanted: { ...state, log: ["Emma"] } }),
    ...parts,
  };
  return defineEnvironment(options as never);
}

function call(name: string, given: object = {}): Action {
  return { type: "call", name, arguments: toPyValue(given as never) as PyDict };
}

const bye: Action = { type: "say", content: "Here you are." };

async function play(environment: ReturnType<typeof shelves>, ...actions: readonly Action[]) {
  const task = environment.task("test", 0);
  return await playActions(environment, { task, user: environment.user, actions }, { signal });
}

/** A lamp that is set to a level, with a JSON Schema; its score lists all calls. */
function dimmer(
  level: object,
  toLevel = (written: unknown): unknown => written,
  answer = (_given: { level: unknown }): unknown => "ok",
) {
  return shelves({
    initialState: () => ({ level: 0 }),
    tools: {
      set_level: {
        description: "Set it.",
        parameters: { type: "object", properties: { level }, required: ["level"] },
        execute: (given: { level: unknown }, state: { level: unknown }) => {
          state.level = toLevel(given.level);
          return answer(given);
        },
      },
    },
    score: (_state: unknown, _task: unknown, { calls }: { calls: unknown }) => ({
      wanted: { level: 5 },
      details: { calls },
    }),
  });
}

/** Lists in lists. */
function nested(depth: number): unknown {
  return depth === 0 ? [] : [nested(depth - 1)];
}

describe("defineEnvironment()", () => {
  test("plays tools on the episode's own state, and reports differences from the wanted state", async () => {
    const environment = shelves();
    const first = await play(environment, call("take", { book: "Emma" }), bye);
    expect(first.opening).toBe("Take Emma.");
    expect(first.steps).toEqual([
      { observation: '{"left":1}', from: "tool", source: "take" },
      { observation: "", from: "user", source: "user", done: "user-left" },
    ]);
    expect(first.score.reward).toBe(1);
    const second = await play(environment, call("take", { book: "Dune" }), bye);
    expect(second.score).toEqual({
      reward: 0,
      details: {
        difference: {
          state: [{ table: "log", record: "0", field: "", wanted: "Emma", got: "Dune" }],
          missingCalls: [],
          extraCalls: [],
          missingOutputs: [],
        },
      },
    });
    expect(shelf.books.Emma.copies).toBe(2);
  });

  test("undoes the changes of a refused call", async () => {
    const { steps, score } = await play(
      shelves(),
      call("take", { book: "Dune", count: 2 }),
      call("take", { book: "Dune" }),
      call("take", { book: "Dune" }),
      bye,
    );
    expect(steps.slice(0, 3)).toEqual([
      { observation: "Error: no Dune is left", from: "tool", source: "take", isError: true },
      { observation: '{"left":0}', from: "tool", source: "take" },
      { observation: "Error: no Dune is left", from: "tool", source: "take", isError: true },
    ]);
    expect(score.details["difference"]).toMatchObject({
      state: [{ table: "log", got: "Dune" }],
    });
  });

  test.each<[string, Action, string]>([
    ["a tool that is not there", call("burn"), "Error: no tool burn, there are take"],
    [
      "a value that the schema refuses",
      call("take", { book: "Ulysses" }),
      'Error: book: Invalid option: expected one of "Emma"|"Dune" (take takes book, count?)',
    ],
    [
      "a number that JavaScript cannot represent",
      call("take", { book: "Emma", count: 2n ** 64n }),
      "Error: count is too large a number (take takes book, count?)",
    ],
    [
      "a number that JSON does not have",
      call("take", { book: "Emma", count: Number.NaN }),
      "Error: count is NaN, expected a number of JSON (take takes book, count?)",
    ],
  ])("answers %s", async (_, action, observation) => {
    const { steps } = await play(shelves(), action);
    expect(steps[0]).toMatchObject({ observation, isError: true });
  });

  test("checks against a JSON Schema as well, and shows either to the model", async () => {
    const schema = {
      type: "object",
      properties: { book: { type: "string", enum: ["Emma"] } },
      required: ["book"],
    } as const;
    const environment = shelves({
      tools: [
        defineTool({
          name: "look",
          description: "Look.",
          parameters: schema,
          execute: (args: { book: string }) => args.book,
        }),
        defineTool({
          name: "find",
          description: "Find.",
          parameters: z.object({ book: z.string().describe("its title") }),
          execute: ({ book }) => book,
        }),
      ],
    });
    expect(environment.tools.map(({ openai }) => openai)).toEqual([
      toPyValue({
        type: "function",
        function: { name: "look", description: "Look.", parameters: schema },
      }),
      toPyValue({
        type: "function",
        function: {
          name: "find",
          description: "Find.",
          parameters: {
            type: "object",
            properties: { book: { type: "string", description: "its title" } },
            required: ["book"],
          },
        },
      }),
    ]);
    const { steps } = await play(environment, call("look", { book: "x" }), call("look"));
    expect(steps.map(({ observation }) => observation)).toEqual([
      'Error: book must be equal to one of the allowed values: "Emma" (look takes book)',
      "Error: must have required property 'book' (look takes book)",
    ]);
  });

  test.each([
    ["NaN", { type: "number" }, Number.NaN, "Error: level is NaN, expected a number of JSON"],
    [
      "infinity",
      { type: "integer" },
      Number.POSITIVE_INFINITY,
      "Error: level is Infinity, expected a number of JSON",
    ],
    [
      "lists in lists without an end",
      {},
      nested(250),
      "Error: level.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.… nests deeper than 100 " +
        "lists and objects",
    ],
  ])("%s is the policy's mistake, and is scored", async (_, level, written, observation) => {
    const environment = dimmer(level);
    const task = environment.task("test", 0);
    const actions = [call("set_level", { level: written }), bye];
    const { steps, score } = await playActions(
      environment,
      { task, user: environment.user, actions },
      { signal },
    );
    expect(steps[0]).toEqual({
      observation: `${observation} (set_level takes level)`,
      from: "tool",
      source: "set_level",
      isError: true,
    });
    expect(score).toMatchObject({ reward: 0, details: { calls: [{ name: "set_level" }] } });
  });

  test("a score may give components and rewards of turns, and the reward is their sum", async () => {
    const shaped = (
      score: (state: object, task: object, played: { turns?: MadeTurn[] }) => object,
    ) => shelves({ score });
    const actions = [call("take", { book: "Emma" }), bye];
    const components = await play(
      shaped(() => ({ components: { state: 1, style: { value: 0.5, weight: 0.5 } } })),
      ...actions,
    );
    expect(components.score).toEqual({
      reward: 1.25,
      components: { state: { value: 1, weight: 1 }, style: { value: 0.5, weight: 0.5 } },
      details: {},
    });
    const byTurn = await play(
      shaped((_state, _task, { turns = [] }) => ({
        turnRewards: turns.map(({ calls, said }) => calls.length / 2 + said.length),
      })),
      ...actions,
    );
    expect(byTurn.score).toEqual({ reward: 1.5, turnRewards: [0.5, 1], details: {} });
  });

  test.each([
    [{ components: { style: "1" } }, 'components.style is "1"'],
    [{ components: { style: undefined } }, "components.style is undefined"],
    [{ components: { style: Number.NaN } }, "components.style is NaN"],
    [
      { components: { style: { value: 1 } } },
      "components.style is { value: 1, weight: undefined }",
    ],
    [{ turnRewards: [0, "1"] }, 'turnRewards[1] is "1"'],
  ])("a score with the parts %j is refused, and the part is named", async (parts, fault) => {
    const scored = play(shelves({ score: () => parts }), call("take", { book: "Emma" }), bye);
    await expect(scored).rejects.toThrow(`: ${fault}, expected a finite number`);
  });

  test("a value that the policy wrote in the form of a picture may be returned to it, and scored", async () => {
    const environment = dimmer({}, undefined, ({ level }) => ({ level }));
    const task = environment.task("test", 0);
    const level = { type: "image", url: "lamp.png" };
    const actions = [call("set_level", { level }), bye];
    const { steps, score } = await playActions(
      environment,
      { task, user: environment.user, actions },
      { signal },
    );
    expect(steps[0]?.observation).toBe('{"level":{"type":"image","url":"lamp.png"}}');
    expect(score).toMatchObject({
      reward: 0,
      details: {
        calls: [{ arguments: { level } }],
        difference: { state: [{ table: "level", wanted: 5, got: level }] },
      },
    });
  });

  test("a state that cannot be written differs from the wanted one", async () => {
    const environment = dimmer({}, (written) => Number(written));
    const task = environment.task("test", 0);
    const actions = [call("set_level", { level: "high" }), bye];
    const { score } = await playActions(
      environment,
      { task, user: environment.user, actions },
      { signal },
    );
    expect(score).toMatchObject({
      reward: 0,
      details: {
        difference: {
          state: [
            {
              table: "level",
              wanted: 5,
              got: "(cannot be written: it is NaN, which JSON does not have)",
            },
          ],
        },
      },
    });
  });

  test("waits for async schemas and tools, and passes them a signal", async () => {
    const environment = shelves({
      tools: {
        take: {
          description: "Take.",
          parameters: z.object({ book: z.string().refine(async (book) => book !== "Ilium") }),
          execute: async ({ book }: { book: string }, state: typeof shelf, context: never) => {
            await Promise.resolve();
            state.log.push(book);
            return (context as { signal: AbortSignal }).signal.aborted;
          },
        },
      },
    });
    const { steps, score } = await play(
      environment,
      call("take", { book: "Ilium" }),
      call("take", { book: "Emma" }),
    );
    expect(steps.map(({ observation }) => observation)).toEqual([
      "Error: book: Invalid input (take takes book)",
      "false",
    ]);
    expect(score.reward).toBe(1);
  });

  test("ends with the user, a tool that ends it, stop(), or isDone()", async () => {
    const give = { description: "Give.", execute: () => "given" };
    const ending = shelves({ tools: { give: { ...give, ends: true } } });
    expect((await play(ending, call("give"))).steps[0]?.done).toBe("terminal-tool");
    const stop = (_: unknown, __: unknown, context: { stop(): void }) => {
      context.stop();
      return "stopped";
    };
    const stopping = shelves({ tools: { give: { ...give, execute: stop } } });
    expect((await play(stopping, call("give"))).steps[0]?.done).toBe("terminal-tool");
    const finished = shelves({ isDone: (state: typeof shelf) => state.log.length > 0 });
    const { steps } = await play(
      finished,
      call("take", { book: "x" }),
      call("take", { book: "Emma" }),
    );
    expect(steps.map(({ done }) => done)).toEqual([undefined, "finished"]);
    const lines = shelves({ user: ["Hello.", "Yes."] });
    const spoken = await play(lines, bye, bye);
    expect(spoken.opening).toBe("Hello.");
    expect(spoken.steps.map(({ observation, done }) => [observation, done])).toEqual([
      ["Yes.", undefined],
      ["", "user-left"],
    ]);
  });

  test("gives each task its own tools and policy if these are functions", async () => {
    const environment = shelves({
      policy: ({ instruction }: { instruction: string }) => `Do: ${instruction}`,
      tools: ({ instruction }: { instruction: string }) => [
        defineTool({ name: instruction.slice(5, 9), description: "", execute: () => "ok" }),
      ],
    });
    expect([environment.tools, environment.policyText]).toEqual([[], ""]);
    const task = environment.task("test", 1);
    const user = environment.user.open(task, { seed: 0 });
    await using world = await environment.open(task, { user, signal });
    expect(world.policyText).toBe("Do: Take Dune.");
    expect(world.tools?.map(({ name }) => name)).toEqual(["Dune"]);
  });

  test("names tasks by split and id, and draws those that are drawn", () => {
    const environment = shelves({
      tasks: {
        train: { length: 1e9, at: (index: number) => ({ instruction: `Take ${index}.` }) },
        test: [{ instruction: "Take Emma.", id: "emma" }],
      },
    });
    expect(environment.splits).toEqual({ train: 1e9, test: 1 });
    expect(environment.task("train", 7)).toEqual({
      id: "shelf/train/7",
      environment: "shelf",
      split: "train",
      index: 7,
      instruction: "Take 7.",
      data: { instruction: "Take 7." },
    });
    expect(environment.task("test", 0).id).toBe("shelf/test/emma");
    expect(() => environment.task("test", 1)).toThrow(
      'Cannot find task 1 of split "test" of shelf, expected train 0 to 999999999 or test 0 to 0',
    );
  });

  test("passes an instance of a class unchanged, and disposes of it", async () => {
    class Connection {
      isOpen = true;
    }
    const connection = new Connection();
    const environment = shelves({
      initialState: async () => connection,
      tools: {
        look: { description: "", execute: (_: unknown, state: Connection) => state.isOpen },
      },
      score: (state: Connection) => state === connection,
      dispose: async (state: Connection) => {
        state.isOpen = false;
      },
    });
    const { steps, score } = await play(environment, call("look"));
    expect([steps[0]?.observation, score.reward, connection.isOpen]).toEqual(["true", 1, false]);
  });

  test("hashes equal states equally", async () => {
    const environment = shelves();
    const hashes: string[] = [];
    for (const book of ["Emma", "Emma", "Dune"]) {
      const task = environment.task("test", 0);
      const user = environment.user.open(task, { seed: 0 });
      await using world = await environment.open(task, { user, signal });
      await world.step(call("take", { book }), { signal });
      hashes.push(await world.stateHash!({ signal }));
    }
    expect(hashes[0]).toBe(hashes[1]);
    expect(hashes[0]).not.toBe(hashes[2]);
  });

  test("hashes binary data by content", async () => {
    const bytes = new Uint8Array([1, 2, 3, 4]);
    const hashOf = async (grid: unknown): Promise<string> => {
      const environment = shelves({ initialState: () => ({ grid }) });
      const task = environment.task("test", 0);
      const user = environment.user.open(task, { seed: 0 });
      await using world = await environment.open(task, { user, signal });
      return await world.stateHash!({ signal });
    };
    for (const [one, other] of [
      [bytes, new Uint8Array([1, 2, 3, 5])],
      [Buffer.from("abc"), Buffer.from("abd")],
      [bytes.buffer, bytes.buffer.slice(1)],
      [new DataView(bytes.buffer, 1, 2), new DataView(bytes.buffer, 2, 2)],
      [{ deep: [bytes.subarray(1)] }, { deep: [bytes.subarray(2)] }],
      [bytes, [1, 2, 3, 4]],
      [new Float64Array([Number.NaN]), new Float64Array([0])],
    ]) {
      expect(await hashOf(one)).toBe(await hashOf(structuredClone(one)));
      expect(await hashOf(one)).not.toBe(await hashOf(other));
    }
  });
});

describe("invalid parts are refused at definition", () => {
  test.each<[string, object, string]>([
    ["no score", { score: undefined }, "it has no score, expected a function score(state, task)"],
    ["a policy of parts", { policy: [{ type: "image" }] }, "no renderer for images"],
    ["no tasks", { tasks: [] }, 'split "test" has no tasks, expected a list of tasks such as'],
    [
      "tasks that stream",
      { tasks: (async function* () {})() },
      "environment shelf: it has no tasks",
    ],
    [
      "an invalid task",
      { tasks: [{ question: "?" }] },
      'Cannot use task 0 of split "test" of shelf: it has no instruction, expected a text',
    ],
    [
      "a task with pictures",
      { tasks: [{ instruction: [{ type: "image_url" }] }] },
      "there is no renderer for images, sound and files yet",
    ],
    [
      "a wrong task id",
      { tasks: [{ instruction: "", id: 7 }] },
      'task 0 of split "test" of shelf: its id is 7, expected a text without spaces, / and #, or none',
    ],
    [
      "the same task id twice",
      {
        tasks: [
          { instruction: "", id: "a" },
          { instruction: "", id: "a" },
        ],
      },
      "tasks 0 and 1: both have the id shelf/test/a",
    ],
    [
      "duplicate names of tools",
      {
        tools: [1, 2].map(() => defineTool({ name: "a", description: "", execute: () => 1 })),
      },
      "two tools are called a, expected names of their own",
    ],
    [
      "an invalid tool",
      { tools: [{ name: "a" }] },
      "tools[0] is not a tool, expected what defineTool()",
    ],
    [
      "a tool without a function",
      { tools: { give: { description: "" } } },
      "tool give: it has no function execute",
    ],
    [
      "a bad JSON Schema",
      {
        tools: {
          give: {
            description: "",
            parameters: { type: "object", properties: { a: { type: "txet" } } },
            execute: () => 1,
          },
        },
      },
      'tool give: its parameters are not a valid JSON Schema: properties/a/type is "txet", expected one of string,',
    ],
    [
      "a schema of no object",
      { tools: { give: { description: "", parameters: z.string(), execute: () => 1 } } },
      "tool give: its parameters are not an object, expected one such as z.object({…})",
    ],
    [
      "fields without z.object()",
      { tools: { give: { description: "", parameters: { a: z.string() }, execute: () => 1 } } },
      "tool give: its parameters are not the schema of an object, expected z.object(…) around these fields",
    ],
    [
      "a schema that no model can be shown",
      {
        tools: {
          give: { description: "", parameters: z.object({ a: z.date() }), execute: () => 1 },
        },
      },
      "tool give: its parameters cannot be written as a JSON Schema: Date cannot be represented",
    ],
    [
      "an old library",
      {
        tools: {
          give: {
            description: "",
            parameters: { "~standard": { version: 1, vendor: "zod", validate: () => ({}) } },
            execute: () => 1,
          },
        },
      },
      "its parameters (zod) have no JSON Schema, expected zod 4.2 or newer",
    ],
    ["a name with spaces", { name: "my shelf" }, "expected a name of letters, digits"],
    ["an invalid user", { user: 3 }, "its user is invalid (it is 3), expected lines such as"],
  ])("%s", (_, parts, message) => {
    const define = () => shelves(parts);
    expect(define).toThrow(UsageError);
    expect(define).toThrow(message);
  });
});

/** Plays both tasks; in the first one `execute` is broken. */
async function playBroken(parts: object): Promise<readonly Episode[]> {
  const environment = shelves(parts);
  const turn = (text: string) => ({ outputIds: characterIds(text) });
  const calls = `<tool_call>\n{"name": "take", "arguments": {"book": "Emma"}}\n</tool_call>`;
  const episodes: Episode[] = [];
  for (const index of [0, 1]) {
    const task = environment.task("test", index);
    const assignment = {
      task,
      rolloutId: `${task.id}#0`,
      groupId: task.id,
      sampleIndex: 0,
      seed: 0,
    };
    const setup = {
      environment,
      user: environment.user,
      engine: createScriptedEngine([turn(calls), turn("Here.")]),
      renderer: createCharacterRenderer(),
      agent: createToolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: toolUsePolicies.many,
      }),
      sampling: {},
      limits: defaultLimits,
      now: () => 0,
    };
    episodes.push(await playEpisode(assignment, setup, { signal }));
  }
  return episodes;
}

/** A tool that fails in the first task only, which it finds by `taskId`. */
function breaks(how: (state: typeof shelf) => unknown, more: object = {}) {
  const execute = (_: unknown, state: typeof shelf, { taskId }: { taskId: string }) => {
    if (taskId === "shelf/test/0") return how(state);
    state.log.push("Emma");
    return "taken";
  };
  return { tools: { take: { description: "Take.", execute, ...more } } };
}

describe("an error during play fails only that episode, and is named", () => {
  const onlyFirst = (broken: () => unknown, right: unknown) => {
    let asked = 0;
    return () => (asked++ === 0 ? broken() : right);
  };
  test.each<[string, object, string, string]>([
    [
      "a forgotten return",
      breaks(() => {}),
      "environment/bad-result",
      "the result of tool take of shelf",
    ],
    [
      "a tool that throws",
      breaks(() => (undefined as never as string[]).length),
      "environment/exception",
      "Tool take of shelf",
    ],
    [
      "a tool that throws, with its line",
      breaks(() => {
        throw new Error("no disk");
      }),
      "environment/exception",
      "threw in task shelf/test/0 at define-environment.test.ts:",
    ],
    [
      "a tool that hangs",
      breaks(() => new Promise(() => {}), { timeoutMs: 5 }),
      "environment/timeout",
      "tool take of shelf",
    ],
    [
      "a result of a wrong type",
      breaks(() => ({ price: () => 3 })),
      "environment/bad-result",
      "its price is a function, which is not data, expected a text or plain data",
    ],
    [
      "a forgotten await",
      breaks(() => ({ price: Promise.resolve(3) })),
      "environment/bad-result",
      "its price is a promise (a forgotten await?)",
    ],
    [
      "NaN in a result",
      breaks(() => [{ price: Number.NaN }]),
      "environment/bad-result",
      "its item [0].price is NaN, which JSON does not have",
    ],
    [
      "a picture in a result",
      breaks(() => [{ type: "image", data: "aGk=", mimeType: "image/png" }]),
      "environment/bad-result",
      'its item [0] is a part of type "image": there is no renderer for images, sound and files yet',
    ],
    [
      "an invalid state",
      { ...breaks(() => "ok"), initialState: onlyFirst(() => {}, shelf) },
      "environment/bad-world",
      "initialState() of shelf",
    ],
    [
      "a score of NaN",
      { ...breaks(() => "ok"), score: onlyFirst(() => Number.NaN, 1) },
      "grader/bad-score",
      "for task shelf/test/0: it is NaN, expected a finite number",
    ],
    [
      "a score of a bigint",
      { ...breaks(() => "ok"), score: onlyFirst(() => 1n, 1) },
      "grader/bad-score",
      "it is 1n (Number(…) makes it one)",
    ],
    [
      "a score without return",
      { ...breaks(() => "ok"), score: onlyFirst(() => {}, 1) },
      "grader/bad-score",
      "it is nothing (a forgotten return?)",
    ],
    [
      "a state of much binary data",
      {
        ...breaks(() => "ok"),
        initialState: onlyFirst(() => ({ index: new Float32Array(2_097_153) }), { log: [] }),
      },
      "environment/bad-world",
      "it holds 8388612 bytes of binary data, which each episode would copy, expected at most 8388608 " +
        "(put read-only data into a constant of the module)",
    ],
    [
      "a score that wants a Map",
      { ...breaks(() => "ok"), score: onlyFirst(() => ({ wanted: new Map([["log", []]]) }), 1) },
      "grader/bad-score",
      "wanted is a Map without own members to compare",
    ],
    [
      "a score that changes the state",
      {
        ...breaks(() => "ok"),
        score: (state: typeof shelf, { instruction }: { instruction: string }) => {
          if (instruction === "Take Emma.") state.log.push("x");
          return 1;
        },
      },
      "grader/exception",
      "(the state is only changed by tools; copy what you change)",
    ],
    [
      "an isDone() that is async, and rejects",
      {
        ...breaks(() => "ok"),
        isDone: onlyFirst(async () => await Promise.reject(new Error("x")), false),
      },
      "environment/bad-step",
      "a promise, expected true or false",
    ],
    [
      "a policy() that is async, and rejects",
      {
        ...breaks(() => "ok"),
        policy: onlyFirst(async () => await Promise.reject(new Error("x")), "p"),
      },
      "environment/bad-world",
      "its policyText is an object with no fields, expected a text or nothing",
    ],
    [
      "an isDone() that returns undefined",
      { ...breaks(() => "ok"), isDone: onlyFirst(() => {}, false) },
      "environment/bad-step",
      "isDone() of shelf",
    ],
  ])("%s", async (_, parts, code, message) => {
    const [broken, other] = await playBroken(parts);
    expect(broken?.outcome).toBe("failed");
    expect(broken?.failure?.code).toBe(code);
    expect(broken?.failure?.message).toContain(message);
    expect(other).toMatchObject({ outcome: "completed", reward: 1 });
  });

  test("a disposal that fails has no effect on the episode", async () => {
    const dispose = async () => {
      throw new Error("no such container");
    };
    const episodes = await playBroken({ ...breaks(() => "ok"), dispose, score: () => 1 });
    expect(episodes.map(({ outcome, reward }) => [outcome, reward])).toEqual([
      ["completed", 1],
      ["completed", 1],
    ]);
  });

  test("a part of the state that is kept beyond its call", async () => {
    let kept: typeof shelf | undefined;
    const [broken] = await playBroken(
      breaks((state) => {
        kept = state;
        return "ok";
      }),
    );
    expect(broken?.outcome).toBe("completed");
    expect(() => kept?.log.push("late")).toThrow("Cannot change the state here: it is read only");
  });

  test("a bigint in a result is a whole number of any size", async () => {
    const tools = { take: { description: "", execute: () => ({ id: 2n ** 64n }) } };
    const { steps } = await play(shelves({ tools }), call("take"));
    expect(steps[0]?.observation).toBe('{"id":18446744073709551616}');
  });

  test("an outage that a tool knows of keeps its code", async () => {
    const [broken] = await playBroken(
      breaks(() => {
        throw new RolloutError("environment/unreachable", "the shop is closed");
      }),
    );
    expect(broken?.failure).toMatchObject({ code: "environment/unreachable" });
  });
});

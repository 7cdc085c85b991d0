import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterEach, describe, expect, test, vi } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { defineEnvironment } from "../../environment/define-environment.ts";
import type { Action, Environment } from "../../environment/environment.ts";
import { playActions } from "../../environment/play-actions.ts";
import { refuse } from "../../environment/refuse.ts";
import { RolloutError, UsageError, isOwnBug } from "../../errors.ts";
import { hideEverywhere } from "../../secrets/redactor.ts";
import { toPyValue, type PyDict } from "../../../packages/python-values/src/value.ts";
import type { User } from "../../user/user.ts";
import { createOpenEnv, type OpenEnvEnvironment } from "./open-env.ts";
import { serveOpenEnv, type ServedOpenEnv, type ServeOpenEnvOptions } from "./serve-open-env.ts";

const { signal } = new AbortController();

const opened: AsyncDisposable[] = [];
afterEach(async () => {
  for (const one of opened.splice(0).toReversed()) await one[Symbol.asyncDispose]();
});

/** A user wants a lamp at a level; each episode has a lamp of its own. */
function lamp(log: string[] = []) {
  return defineEnvironment({
    name: "lamp",
    tasks: {
      train: [3, 4].map((level) => ({ instruction: `To ${level}, please.`, level })),
      test: [{ instruction: "To 9, please.", level: 9 }],
    },
    initialState: () => ({ level: 0 }),
    policy: "You look after a lamp.",
    tools: {
      set: {
        description: "Set it.",
        parameters: { type: "object", properties: { to: { type: "integer" } }, required: ["to"] },
        execute(given, state) {
          const { to } = given as { to: number };
          if (to > 10) refuse("it goes to 10");
          if (to < 0) throw new Error("the lamp broke");
          state.level = to;
          return { level: to };
        },
      },
    },
    score: ({ level }, task) => ({ reward: level === task.level ? 1 : 0, details: { level } }),
    dispose: ({ level }) => log.push(`disposed at ${level}`),
  });
}

async function serve(
  environment: Environment & { user?: User } = lamp(),
  options: ServeOpenEnvOptions = {},
): Promise<ServedOpenEnv> {
  const server = await serveOpenEnv(environment, { port: 0, ...options });
  opened.push(server);
  return server;
}

function call(name: string, given: object = {}): Action {
  return { type: "call", name, arguments: toPyValue(given as never) as PyDict };
}
const bye: Action = { type: "say", content: "It is." };

async function play(
  environment: OpenEnvEnvironment,
  actions: readonly Action[],
  [split, index]: readonly [string, number] = ["train", 0],
) {
  const task = environment.task(split, index);
  return await playActions(environment, { task, user: environment.user, actions }, { signal });
}

async function errorOf(work: Promise<unknown>): Promise<Error> {
  return await work.then(
    () => new Error("nothing was thrown"),
    (error: unknown) => error as Error,
  );
}

describe("an environment that is served as OpenEnv, and played as one", () => {
  test("has its tools, its tasks and its reward", async () => {
    const { url } = await serve();
    const environment = await createOpenEnv({ url, say: (content) => ({ type: "say", content }) });
    expect(environment).toMatchObject({
      name: "lamp",
      splits: { train: 2, test: 1 },
      policyText: "You look after a lamp.",
    });
    expect(environment.tools.map(({ name }) => name)).toEqual(["set"]);
    const played = await play(environment, [
      call("set", { to: "x" }),
      call("set", { to: 11 }),
      call("set", { to: 3 }),
      bye,
    ]);
    expect(played.opening).toContain("To 3, please.");
    expect(played.steps).toEqual([
      {
        observation: "Error: to must be integer (set takes to)",
        from: "tool",
        source: "set",
        isError: true,
      },
      { observation: "Error: it goes to 10", from: "tool", source: "set", isError: true },
      { observation: '{"level":3}', from: "tool", source: "set" },
      { observation: "", from: "user", source: "user", done: "finished" },
    ]);
    expect(played.score).toEqual({
      reward: 1,
      details: { rewards: [null, null, null, 1], isDone: true },
    });
    const other = await play(environment, [call("set", { to: 3 }), bye], ["test", 0]);
    expect(other.opening).toContain("To 9, please.");
    expect(other.score.reward).toBe(0);
  });

  test("plays sessions separately, and frees the resources of each", async () => {
    const log: string[] = [];
    const server = await serve(lamp(log));
    const environment = await createOpenEnv(server);
    const open = async (index: number) => {
      const task = environment.task("train", index);
      return await environment.open(task, {
        user: environment.user.open(task, { seed: 0 }),
        signal,
      });
    };
    const worlds = [await open(0), await open(1)];
    for (const world of worlds) await world.begin({ signal });
    for (const [index, world] of worlds.entries()) {
      await world.step(call("set", { to: index + 5 }), { signal });
    }
    expect(server.sessionCount).toBe(2);
    for (const world of worlds) await world[Symbol.asyncDispose]();
    // Its sessions end after their connections.
    await server[Symbol.asyncDispose]();
    expect(log.toSorted()).toEqual(["disposed at 5", "disposed at 6"]);
  });

  test("fails only the episode whose tool breaks", async () => {
    const environment = await createOpenEnv(await serve());
    const error = await errorOf(play(environment, [call("set", { to: -1 })]));
    expect(error).toBeInstanceOf(RolloutError);
    expect(error).toMatchObject({ code: "environment/exception", retryable: true });
    expect(error.message).toContain("the lamp broke");
    const { score } = await play(environment, [call("set", { to: 3 })]);
    // The session has not ended: there is no reward yet.
    expect(score).toEqual({ reward: null, details: { rewards: [null, null], isDone: false } });
  });

  test("accepts no more sessions than its limit, and ends silent ones", async () => {
    const due: (() => void)[] = [];
    const after = (ms: number, callback: () => void) => {
      if (ms === 5_000) due.push(callback);
      return () => {};
    };
    const server = await serve(lamp(), {
      maxSessions: 1,
      idleMs: 5_000,
      clock: { after, now: () => 0 },
    });
    const environment = await createOpenEnv(server);
    const untilEmpty = async () => await vi.waitFor(() => expect(server.sessionCount).toBe(0));
    await untilEmpty();
    const silent = new WebSocket(`${server.url.replace("http", "ws")}/ws`);
    await new Promise((resolve) => silent.once("open", resolve));
    const error = await errorOf(play(environment, []));
    expect(error).toMatchObject({ code: "environment/unreachable", retryable: true });
    expect(error.message).toContain("1 sessions are open, and no more are taken");
    const closed = new Promise((resolve) => silent.once("close", resolve));
    due.at(-1)!();
    await closed;
    await untilEmpty();
    expect((await play(environment, [])).opening).toContain("To 3, please.");
  });

  test("answers invalid messages, actions and tasks, and continues", async () => {
    const { url } = await serve();
    const socket = new WebSocket(`${url.replace("http", "ws")}/ws`);
    await new Promise((resolve) => socket.once("open", resolve));
    const ask = async (text: string) => {
      const answered = new Promise<Buffer>((resolve) => socket.once("message", resolve));
      socket.send(text);
      return JSON.parse((await answered).toString()) as { type: string; data: { code?: string } };
    };
    const asked = [
      ["{", "INVALID_JSON"],
      ["null", "UNKNOWN_TYPE"],
      ['{"type":"dance"}', "UNKNOWN_TYPE"],
      ['{"type":"step","data":{"type":"finish"}}', "VALIDATION_ERROR"],
      ['{"type":"reset","data":{"index":-1}}', "VALIDATION_ERROR"],
      ['{"type":"reset","data":{"split":"none","index":0}}', "VALIDATION_ERROR"],
      ['{"type":"reset","data":{"seed":3}}', undefined],
      ['{"type":"step"}', "VALIDATION_ERROR"],
      ['{"type":"step","data":{"type":"call_tool","tool_name":1}}', "VALIDATION_ERROR"],
    ] as const;
    for (const [text, code] of asked) {
      const { data } = await ask(text);
      expect(data.code, text).toBe(code);
    }
    expect(await ask('{"type":"step","data":{"type":"call_tool","tool_name":"no"}}')).toMatchObject(
      {
        data: { observation: { error: { message: "Error: no tool no, there are set" } } },
      },
    );
    expect(await ask('{"type":"state"}')).toEqual({
      type: "state",
      data: { episode_id: null, step_count: 1, task_id: "lamp/train/1" },
    });
    expect(await ask('{"type":"step","data":{"type":"finish"}}')).toMatchObject({
      data: { reward: 0, done: true, metadata: { details: { level: 0 } } },
    });
    expect((await ask('{"type":"step","data":{"type":"finish"}}')).data.code).toBe(
      "VALIDATION_ERROR",
    );
    socket.close();
  });

  test("refuses web pages of other origins", async () => {
    const { url } = await serve();
    const ask = async (headers: Record<string, string>) =>
      (await fetch(`${url}/metadata`, { headers })).status;
    expect(await ask({})).toBe(200);
    expect(await ask({ origin: "http://localhost:3000" })).toBe(200);
    expect(await ask({ origin: "https://example.com" })).toBe(403);
    const socket = new WebSocket(`${url.replace("http", "ws")}/ws`, {
      origin: "https://example.com",
    });
    const error = await new Promise<Error>((resolve) => socket.once("error", resolve));
    expect(error.message).toBe("Unexpected server response: 403");
  });

  test("lists its tasks over HTTP", async () => {
    const { url } = await serve();
    const post = async (path: string, body: object) => {
      const reply = await fetch(`${url}/${path}`, { method: "POST", body: JSON.stringify(body) });
      return [reply.status, await reply.json()] as const;
    };
    expect(await (await fetch(`${url}/lamp/splits`)).json()).toEqual([
      { name: "train", type: "train" },
      { name: "test", type: "test" },
    ]);
    expect(await post("lamp/num_tasks", { split: "train" })).toEqual([200, { num_tasks: 2 }]);
    const first = { id: "lamp/train/0", split: "train", index: 0, instruction: "To 3, please." };
    expect(await post("lamp/task", { split: "train", index: 0 })).toEqual([200, { task: first }]);
    expect(await post("lamp/task_range", { split: "train", start: 0, stop: 1 })).toEqual([
      200,
      { tasks: [first] },
    ]);
    expect((await post("lamp/task", { split: "train", index: 7 }))[0]).toBe(400);
    expect((await post("lamp/num_tasks", { split: "dev" }))[1]).toEqual({
      detail: 'Cannot find split "dev" of lamp, expected one of train, test',
    });
    expect((await fetch(`${url}/lamp/nothing`)).status).toBe(404);
  });
});

/** Another implementation of a server: describes itself, and answers each message by a callback. */
async function foreignServer(
  action: object,
  reply: (message: { type: string; data: object }) => unknown,
): Promise<string> {
  const server = createServer((request, response) => {
    const known: Record<string, object> = {
      "/metadata": { name: "Foreign Env", description: "" },
      "/schema": { action, observation: {}, state: {} },
    };
    const body = known[request.url ?? ""];
    response.writeHead(body === undefined ? 404 : 200).end(JSON.stringify(body ?? {}));
  });
  const sockets = new WebSocketServer({ server });
  sockets.on("connection", (socket) => {
    socket.on("message", (data: Buffer) => {
      const answer = reply(JSON.parse(data.toString()) as never);
      if (answer === "close") socket.terminate();
      else if (answer !== "silence") socket.send(String(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  opened.push({
    [Symbol.asyncDispose]: async () => {
      for (const socket of sockets.clients) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const guess = {
  type: "object",
  properties: { metadata: { type: "object" }, number: { type: "integer" } },
  required: ["number"],
};

function observation(data: object): string {
  return JSON.stringify({ type: "observation", data });
}

describe("createOpenEnv()", () => {
  test("makes one tool of a typed action, and sums the rewards", async () => {
    let left = 3;
    const asked: object[] = [];
    const url = await foreignServer(guess, ({ type, data }) => {
      asked.push({ type, data });
      if (type === "reset") return observation({ observation: { hint: "1 to 3" }, reward: null });
      left -= 1;
      const done = left === 0;
      return observation({ observation: { hint: "no", left }, reward: done ? true : -0.5, done });
    });
    const environment = await createOpenEnv({ url });
    expect(environment).toMatchObject({
      name: "Foreign-Env",
      splits: { train: 10_000, test: 100 },
    });
    const turn = call("act", { number: 2 });
    const played = await play(environment, [turn, turn, turn], ["train", 7]);
    expect(played.opening).toBe("1 to 3");
    expect(played.steps.map(({ observation: text, done }) => [text, done])).toEqual([
      ['{"hint":"no","left":2}', undefined],
      ['{"hint":"no","left":1}', undefined],
      ['{"hint":"no","left":0}', "finished"],
    ]);
    expect(played.score).toEqual({
      reward: 0,
      details: { rewards: [null, -0.5, -0.5, 1], isDone: true },
    });
    expect(asked.slice(0, 2)).toEqual([
      { type: "reset", data: { seed: 7 } },
      { type: "step", data: { number: 2 } },
    ]);
  });

  test("each of its tools is independent: odd schemas and names are reported", async () => {
    const properties = { type: { type: "string" }, tool_name: {}, arguments: {} };
    const asked: unknown[] = [];
    const tools = [
      {
        name: "plain",
        description: null,
        input_schema: { properties: { a: { type: "integer" } } },
      },
      { name: "a.b", input_schema: { properties: { x: { pattern: "(.)\\1" } } } },
      { name: "text", input_schema: { type: "string" } },
      { name: "none", input_schema: null },
    ];
    const url = await foreignServer({ type: "object", properties }, ({ type, data }) => {
      if (type === "reset") return observation({ observation: {} });
      if (type !== "step") return "silence";
      if ((data as { type?: string }).type === "list_tools") {
        return observation({ observation: { tools } });
      }
      asked.push(data);
      return observation({ observation: { text: "done" }, reward: 1, done: true });
    });
    const troubles: string[] = [];
    const environment = await createOpenEnv({
      url,
      onTrouble: (trouble) => troubles.push(trouble),
    });
    expect(environment.tools.map(({ name }) => name)).toEqual(["plain", "a_b", "none"]);
    expect(troubles.map((trouble) => trouble.replace(`OpenEnv server ${url}: `, ""))).toEqual([
      'a tool is left out: tool "text" takes no object (its schema is {"type":"string"}), expected {"type": "object", …}',
      'the model calls tool "a.b" by the name a_b: engines allow letters, digits, _ and -, at most 64',
      'a part of the schema of tool "a.b" is not checked here, the server checks it: properties/x/pattern is "(.)\\\\1" ' +
        "(it holds a back-reference), expected a pattern that JavaScript or Python reads and linear time allows",
    ]);
    await play(environment, [call("a_b", { x: "ab" })], ["train", 0]);
    expect(asked).toEqual([{ type: "call_tool", tool_name: "a.b", arguments: { x: "ab" } }]);
  });

  test("shows the model which action the server did not take", async () => {
    const url = await foreignServer(guess, ({ type }) =>
      type === "reset"
        ? observation({ observation: {} })
        : JSON.stringify({
            type: "error",
            data: {
              message: "Invalid message",
              code: "VALIDATION_ERROR",
              errors: [{ loc: ["number"], msg: "Input should be less than 4" }],
            },
          }),
    );
    const environment = await createOpenEnv({ url });
    const { opening, steps } = await play(environment, [call("act", { number: 9 })]);
    expect(opening).toBe("Play Foreign-Env.");
    expect(steps[0]).toEqual({
      observation: "Error: number: Input should be less than 4",
      from: "tool",
      source: "act",
      isError: true,
    });
  });

  test("cuts a server's text after a key, and not within it", async () => {
    hideEverywhere({ secrets: ["world-canary-0123456789"] });
    const msg = `${"x".repeat(490)} world-canary-0123456789 is wrong`;
    const errors = [{ loc: ["number"], msg }];
    const url = await foreignServer(guess, ({ type }) =>
      type === "reset"
        ? observation({ observation: {} })
        : JSON.stringify({ type: "error", data: { code: "VALIDATION_ERROR", errors } }),
    );
    const { steps } = await play(await createOpenEnv({ url }), [call("act", { number: 9 })]);
    expect(steps[0]?.observation).toBe(`Error: number: ${"x".repeat(490)} [redacted…`);
  });

  test("shows the model problems of any form", async () => {
    const errors = [null, 7, { loc: [{ toString: 1 }, "x"], msg: { toString: 1 } }];
    const url = await foreignServer(guess, ({ type }) =>
      type === "reset"
        ? observation({ observation: {} })
        : JSON.stringify({ type: "error", data: { code: "VALIDATION_ERROR", errors } }),
    );
    const { steps } = await play(await createOpenEnv({ url }), [call("act", { number: 9 })]);
    expect(steps[0]?.observation).toBe('Error: nothing; nothing; {"toString":1}.x: {"toString":1}');
  });

  test.each([
    ["what is no JSON", "{", "environment/bad-step", "Expecting property name"],
    ["another message", '{"type":"dance"}', "environment/bad-step", "a message of type dance"],
    [
      "no observation",
      '{"type":"observation","data":{}}',
      "environment/bad-step",
      "it answered {}",
    ],
    [
      "an error with a code that is not text",
      '{"type":"error","data":{"code":{"toString":1},"message":{"toString":1}}}',
      "environment/exception",
      'it answered {"toString":1}: {"toString":1}',
    ],
    [
      "an error that is a text",
      '{"type":"error","data":"the lamp broke"}',
      "environment/exception",
      "it answered an error: the lamp broke",
    ],
    [
      "an error of FastAPI's",
      '{"type":"error","data":{"detail":"the lamp broke"}}',
      "environment/exception",
      "it answered an error: the lamp broke",
    ],
    ["a message that is null", "null", "environment/bad-step", "a message of type nothing"],
    ["a closed connection", "close", "environment/unreachable", "it closed the connection (1006)"],
    ["silence", "silence", "environment/timeout", "no answer within 100 ms"],
  ])("fails the episode for %s", async (_, reply, code, words) => {
    const url = await foreignServer(guess, ({ type }) =>
      type === "reset" ? observation({ observation: {} }) : reply,
    );
    const environment = await createOpenEnv({ url, timeoutMs: 100 });
    const error = await errorOf(play(environment, [call("act", { number: 1 })]));
    expect(error).toMatchObject({ name: "RolloutError", code });
    expect(error.message).toContain(words);
  });

  test("refuses to score an episode that was given no reward", async () => {
    const url = await foreignServer(guess, ({ type }) =>
      observation({ observation: {}, done: type === "step" }),
    );
    const number = call("act", { number: 1 });
    const error = await errorOf(play(await createOpenEnv({ url }), [number]));
    expect(error).toMatchObject({ code: "grader/bad-score" });
    expect((await play(await createOpenEnv({ url }), [bye])).score).toEqual({
      reward: null,
      details: { rewards: [null], isDone: true },
    });
    const own = await createOpenEnv({ url, reward: (rewards) => rewards.length });
    expect((await play(own, [number])).score.reward).toBe(2);
  });

  test.each<[string, (number | null)[], number | null]>([
    ["of no reward", [null, null, null], null],
    ["of a reset's reward alone, which is for no step", [0, null, null], null],
    ["of a reward of 0", [null, 0, null], 0],
    ["of some rewards", [0.5, null, -1], -0.5],
  ])("does not take an attempt %s for another", async (_what, rewards, reward) => {
    const given = rewards.values();
    const url = await foreignServer(guess, () =>
      observation({ observation: {}, reward: given.next().value ?? null }),
    );
    const number = call("act", { number: 1 });
    const { score } = await play(await createOpenEnv({ url }), [number, number]);
    expect(score).toEqual({ reward, details: { rewards, isDone: false } });
  });

  test("fails an episode that is over before it begins", async () => {
    const url = await foreignServer(guess, () => observation({ observation: {}, done: true }));
    const error = await errorOf(play(await createOpenEnv({ url }), []));
    expect(error).toMatchObject({ name: "RolloutError", code: "environment/bad-step" });
    expect(error.message).toContain("says at the reset that the episode is done");
  });

  test("is misused by a step before its start or after its end", async () => {
    const url = await foreignServer(guess, ({ type }) =>
      observation({ observation: {}, reward: 1, done: type === "step" }),
    );
    const environment = await createOpenEnv({ url });
    const task = environment.task("train", 0);
    const user = environment.user.open(task, { seed: 0 });
    await using world = await environment.open(task, { user, signal });
    const early = await errorOf(world.step(call("act", { number: 1 }), { signal }));
    await world.begin({ signal });
    await world.step(call("act", { number: 1 }), { signal });
    const late = await errorOf(world.step(call("act", { number: 1 }), { signal }));
    expect([early.message, late.message]).toEqual([
      `Cannot step task ${task.id}: it was not begun`,
      `Cannot step task ${task.id}: it is done`,
    ]);
    expect([early, late].map(isOwnBug)).toEqual([false, false]);
  });

  test("reports an address without such a server", async () => {
    const messages = [];
    const other = createServer((_, response) => response.writeHead(404).end("{}"));
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
    for (const place of [url, "http://127.0.0.1:1", "localhost:8000"]) {
      const error = await errorOf(createOpenEnv({ url: place }));
      expect(error).toBeInstanceOf(UsageError);
      messages.push(error.message);
    }
    await new Promise((resolve) => other.close(resolve));
    expect(messages).toEqual([
      `Cannot use ${url}: it has no /metadata and /schema, expected an OpenEnv server`,
      "Cannot use OpenEnv server http://127.0.0.1:1/metadata: connect ECONNREFUSED 127.0.0.1:1",
      "Cannot use an OpenEnv server at localhost:8000: expected an address such as http://127.0.0.1:8000",
    ]);
  });
});

import { describe, expect, test } from "vitest";
import { createToolCallingAgent } from "../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../agent/tool-use-policy.ts";
import { defineEnvironment } from "../environment/define-environment.ts";
import type { Environment } from "../environment/environment.ts";
import { RolloutError, type FailureCode } from "../errors.ts";
import { createClock } from "../async/clock.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { createDeferred } from "../testing/deferred.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { noSpending } from "../user/chat/add-spending.ts";
import { llmUser } from "../user/llm-user.ts";
import type { User, UserSession } from "../user/user.ts";
import { lamp, play, says, switchCall } from "./lamp-episode.fixture.ts";

const never = (): Promise<never> => new Promise<never>(() => {});

function userOf(session: Partial<UserSession>, parts: Partial<User> = {}): User {
  const rest: UserSession = {
    begin: async () => "Hi",
    reply: async () => ({ text: "Bye.", leaves: true }),
    usage: () => noSpending,
  };
  return { strategy: "own", open: () => ({ ...rest, ...session }), ...parts };
}

/** The lamp with other methods; `ask` is the user's function that its world received. */
function lampThat(
  change: (
    world: Awaited<ReturnType<Environment["open"]>>,
    ask: UserSession,
    signal: AbortSignal,
  ) => object | Promise<object>,
  parts: Partial<Environment> = {},
): Environment {
  return {
    ...lamp(),
    ...parts,
    async open(task, options) {
      const world = await lamp().open(task, options);
      return { ...world, ...(await change(world, options.user, options.signal)) };
    },
  };
}

const aloud = "How was it?";

/** Worlds that ask the user for a line when one of their methods is called. */
const askers = {
  open: (_world, ask, signal) => ask.begin({ signal }).then(() => ({})),
  begin: (_world, ask) => ({
    begin: async (call: { signal: AbortSignal }) => await ask.begin(call),
  }),
  step: (world) => world,
  score: (_world, ask) => ({
    score: async (call: { signal: AbortSignal }) => {
      await ask.reply(aloud, call);
      return { reward: 1, details: {} };
    },
  }),
  dispose: (_world, ask, signal) => ({
    [Symbol.asyncDispose]: async () => void (await ask.reply(aloud, { signal })),
  }),
} satisfies Record<string, Parameters<typeof lampThat>[0]>;

test.each([
  ["open", "hear the user's first line of task lamp/test/0"],
  ["begin", "hear the user's first line of task lamp/test/0"],
  ["step", "hear the user's reply in task lamp/test/0"],
  ["score", "hear the user's reply in task lamp/test/0"],
  ["dispose", "hear the user's reply in task lamp/test/0"],
] as const)("a user who hangs is blamed for it, asked in %s()", async (where, what) => {
  const hand = createManualClock();
  const asked = createDeferred();
  const hang = (): Promise<never> => {
    asked.resolve();
    return never();
  };
  const user = userOf({
    begin: async () => (where === "open" || where === "begin" ? await hang() : "Hi"),
    reply: async (text) =>
      where === "step" || text === aloud ? await hang() : { text: "Bye.", leaves: true },
  });
  const playing = play([says("Goodbye!")], {
    user,
    environment: lampThat(askers[where]),
    clock: createClock(hand),
    limits: { toolTimeoutMs: 777, userTimeoutMs: 777, scoreTimeoutMs: 777 },
  });
  await asked.promise;
  await hand.advance(777);
  const { episode, troubles } = await playing;
  expect(episode.outcome).toBe(where === "dispose" ? "completed" : "failed");
  expect(troubles.map((trouble) => trouble.toFailure())).toEqual([
    {
      party: "user",
      code: "user/timeout",
      message: `Cannot ${what}: no answer within 777 ms`,
    },
  ]);
});

describe("a world that does not wait for a line that it requested", () => {
  const model = { name: "clerk", complete: never };
  const silence = { observation: "(silence)", from: "user", source: "user", done: "finished" };
  const begins = { begin: async () => "Hi" };

  test.each([
    ["step say", llmUser({ model }), "chat clerk"],
    ["step say", userOf({ reply: never }, { strategy: "own", repeatable: false }), "user.reply()"],
    ["score", llmUser({ model }), "chat clerk"],
  ] as const)("is to blame in %s", async (where, user, called) => {
    const environment = lampThat(
      (world, ask) => ({
        ...begins,
        step: async (_action: unknown, call: { signal: AbortSignal }) => {
          if (where === "step say") void ask.reply("Hello", call).catch(() => {});
          return silence;
        },
        score: async (call: { signal: AbortSignal }) => {
          void ask.reply(aloud, call).catch(() => {});
          return await world.score(call);
        },
      }),
      { repeatable: true },
    );
    const { episode } = await play([says("Hello")], { user, environment });
    const party = where === "score" ? "grader" : "environment";
    expect(episode.failure).toEqual({
      party,
      code: `${party}/outside-not-awaited`,
      message:
        `Cannot use the answer of ${where}: it came before that of ${called}, which was called through ` +
        "outside, expected it to wait for the user's line, or the episode could not be played again",
    });
  });

  test("is not the world's failure if the user did not wait", async () => {
    const user: User = {
      ...userOf({}, { repeatable: true }),
      open: (_task, { outside }) =>
        userOf({
          reply: async () => {
            void outside!("log", never);
            return { text: "Bye.", leaves: true };
          },
        }).open(_task, { seed: 0 }),
    };
    const { episode } = await play([says("Hello")], { user });
    expect(episode.failure).toEqual({
      party: "user",
      code: "user/outside-not-awaited",
      message:
        "Cannot use the answer of step say: it came before that of log, which was called through outside, " +
        'expected it to wait (await outside("log", …)), or the episode could not be played again',
    });
  });
});

test.each(["begin", "reply"] as const)(
  "a world that calls user.%s() without a signal gets an error",
  async (method) => {
    const model = { name: "clerk", complete: never };
    const environment = lampThat((_world, ask) => ({
      begin: async () =>
        method === "begin"
          ? await (ask.begin as () => Promise<string>)()
          : await (ask.reply as (text: string) => Promise<string>)("Hello"),
    }));
    const { episode } = await play([says("Hi")], { environment, user: llmUser({ model }) });
    const what = method === "begin" ? "first line of" : "reply in";
    expect(episode.failure).toEqual({
      party: "environment",
      code: "environment/exception",
      message:
        `Cannot begin task lamp/test/0: Cannot hear the user's ${what} task lamp/test/0: the world asks for ` +
        "it without a signal, expected the one that it was called with ({ signal })",
    });
  },
);

test.each([
  ["begin", null, "null"],
  ["reply", null, "null"],
  ["retake", null, "null"],
  ["reply", { aborted: false }, "an object with aborted"],
] as const)(
  "a world that calls user.%s() with %j as signal gets an error",
  async (method, signal, shown) => {
    const clerk = {
      name: "clerk",
      complete: async () => ({
        text: "Hi.",
        inputTokenCount: 1,
        outputTokenCount: 1,
        finishReason: "stop" as const,
      }),
    };
    const call = { signal } as never;
    const environment = lampThat((_world, ask) => ({
      begin: async (how: { signal: AbortSignal }) => {
        if (method === "begin") return await ask.begin(call);
        const first = await ask.begin(how);
        await (method === "reply" ? ask.reply("Hello", call) : ask.retake!(call));
        return first;
      },
    }));
    const { episode } = await play([says("Hi")], { environment, user: llmUser({ model: clerk }) });
    const what = method === "begin" ? "first line of" : "reply in";
    expect(episode.failure).toEqual({
      party: "environment",
      code: "environment/exception",
      message:
        `Cannot begin task lamp/test/0: Cannot hear the user's ${what} task lamp/test/0: the world asks for ` +
        `it with ${shown} as signal, expected the one that it was called with ({ signal })`,
    });
  },
);

test.each([
  [undefined, "nothing"],
  [7, "7"],
  [{ role: "assistant" }, "an object with role"],
])(
  "a world that gives the user %j gets an error, and the user receives nothing",
  async (text, shown) => {
    const heard: string[] = [];
    const user = userOf({
      reply: async (said) => {
        heard.push(said);
        return "Fine.";
      },
    });
    const environment = lampThat((_world, ask) => ({
      begin: async () => "Hi",
      step: async (_action: unknown, call: { signal: AbortSignal }) => {
        const observation = await ask.reply(text as never, call);
        return { observation, from: "user", source: "user" };
      },
    }));
    const { episode } = await play([says("Hello")], { environment, user });
    expect(episode.failure).toEqual({
      party: "environment",
      code: "environment/exception",
      message:
        "Cannot pass on what the agent said in task lamp/test/0: Cannot hear the user's reply in task " +
        `lamp/test/0: the world passes ${shown}, expected a text (what the agent said)`,
    });
    expect(heard).toEqual([]);
  },
);

test.each<[call: string, given: readonly unknown[], shown: string]>([
  ["without a name", [() => 1], "a function"],
  ["by a number that no recording takes", [7n, () => 1], "7n"],
  ["without work", ["weather"], "weather with nothing"],
  ["with a promise", ["weather", Promise.resolve()], "weather with an object with no fields"],
])("a world that calls an external service %s gets an error", async (_, given, shown) => {
  const environment: Environment = {
    ...lamp(),
    async open(task, options) {
      await (options.outside as (...call: readonly unknown[]) => Promise<unknown>)(...given);
      return await lamp().open(task, options);
    },
  };
  const { episode } = await play([says("Hello")], { environment });
  expect(episode.failure).toEqual({
    party: "environment",
    code: "environment/exception",
    message:
      `Cannot open task lamp/test/0: Cannot call ${shown} through outside, expected a text that names the ` +
      "call, and a function that makes it",
  });
});

describe("a world that calls its user or itself out of turn", () => {
  test("fails only its episode: requests another line before the first", async () => {
    const model = { name: "clerk", complete: never };
    const environment = lampThat((_world, ask) => ({
      begin: async (call: { signal: AbortSignal }) => await ask.retake!(call),
    }));
    const { episode } = await play([says("Hi")], { environment, user: llmUser({ model }) });
    expect(episode.failure).toEqual({
      party: "environment",
      code: "environment/exception",
      message:
        "Cannot begin task lamp/test/0: Cannot ask the user of task lamp/test/0 for another line: they " +
        "have said none",
    });
  });

  test("fails only its episode: a defined world continues after it is done", async () => {
    const inner = defineEnvironment({
      name: "lamps",
      tasks: [{ instruction: "On." }],
      policy: "",
      tools: {},
      score: () => 1,
    });
    const environment: Environment = {
      ...lamp(),
      async open(_task, options) {
        const task = inner.task("test", 0);
        const world = await inner.open(task, {
          ...options,
          user: inner.user.open(task, { seed: 0 }),
        });
        return {
          begin: async (call) => await world.begin(call),
          step: async (action, call) => {
            const { done: _done, ...step } = await world.step(action, call);
            return step;
          },
          score: async (call) => await world.score(call),
          userUsage: () => world.userUsage(),
          [Symbol.asyncDispose]: async () => await world[Symbol.asyncDispose](),
        };
      },
    };
    const { episode } = await play([says("Hi"), says("Hi")], { environment });
    expect(episode.failure).toEqual({
      party: "environment",
      code: "environment/exception",
      message:
        "Cannot pass on what the agent said in task lamp/test/0: Cannot step task lamps/test/0: it is done",
    });
  });
});

describe("with an engine of its own that is down", () => {
  const down = (): never => {
    throw new RolloutError("engine/unreachable", "Cannot sample judge: no server listens", {
      retryable: true,
      discarded: [{ requestId: "judge", reason: "it was cut off", tokenCount: 3 }],
    });
  };
  const agent = createToolCallingAgent({
    parser: findToolCallParser("qwen25"),
    toolUsePolicy: toolUsePolicies.many,
  });
  const asks = async (): Promise<never> => down();

  test.each<[where: string, party: string, what: string, Parameters<typeof play>[1]]>([
    [
      ...(["a judge", "grader", "score task lamp/test/0"] as const),
      { environment: lampThat(() => ({ score: asks })) },
    ],
    [
      ...(["a tool", "environment", "call tool switch in task lamp/test/0"] as const),
      { environment: lampThat(() => ({ step: asks })) },
    ],
    [
      ...(["a world", "environment", "open task lamp/test/0"] as const),
      { environment: lampThat(asks) },
    ],
    [
      ...(["a user", "user", "hear the user's reply in task lamp/test/0"] as const),
      { user: userOf({ reply: asks }) },
    ],
    [
      ...([
        "a user who is opened",
        "user",
        "open a conversation about task lamp/test/0 with user own",
      ] as const),
      { user: userOf({}, { open: down }) },
    ],
    [
      ...([
        "an agent",
        "agent",
        "show observations in task lamp/test/0 as agent tool-calling",
      ] as const),
      { agent: { ...agent, observe: down } },
    ],
  ])("fails by itself, and not by the policy's engine: %s", async (_, party, what, options) => {
    const { episode, troubles } = await play([says(switchCall), says("Goodbye!")], options);
    expect(episode.failure).toEqual({
      party,
      code: `${party}/exception`,
      message: `Cannot ${what}: Cannot sample judge: no server listens`,
    });
    expect(troubles.map(({ retryable, cause }) => [retryable, cause])).toEqual([
      [true, expect.objectContaining({ code: "engine/unreachable" })],
    ]);
  });

  test.each<[FailureCode, FailureCode]>([
    ["grader/unreachable", "grader/unreachable"],
    ["environment/unreachable", "environment/unreachable"],
    ["user/unreachable", "user/unreachable"],
    ["agent/unreachable", "grader/exception"],
    ["internal/unreachable", "grader/exception"],
  ])("the party that a score asks is blamed for its failure: %s ends as %s", async (code, ends) => {
    const score = async (): Promise<never> => {
      throw new RolloutError(code, "gone");
    };
    const { episode } = await play([says("Goodbye!")], {
      environment: lampThat(() => ({ score })),
    });
    expect(episode.failure?.code).toBe(ends);
  });
});

import { runInNewContext } from "node:vm";
import { describe, expect, test } from "vitest";
import type { Agent, Reading } from "../agent/agent.ts";
import { createToolCallingAgent } from "../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../agent/tool-use-policy.ts";
import type { Engine, Generation } from "../engine/engine.ts";
import type { Environment, World } from "../environment/environment.ts";
import { RolloutError, describeStack } from "../errors.ts";
import { createClock } from "../async/clock.ts";
import { toolsFromOpenAi } from "../message.ts";
import { PlaybackStop } from "../outside.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { toPyValue, type PyValue } from "../../packages/python-values/src/value.ts";
import { ConversationRefusal, HiddenTool } from "../renderer/render-prompt.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { createDeferred } from "../testing/deferred.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import type { User, UserSession, UserUsage } from "../user/user.ts";
import { lamp, play, preparedEngine, says, switchCall } from "./lamp-episode.fixture.ts";

/** The lamp with parts of its world replaced. */
function lampWith(parts: { readonly [Key in keyof World]?: unknown }): Environment {
  const environment = lamp();
  return {
    ...environment,
    async open(task, options) {
      const world = await environment.open(task, options);
      return { ...world, [Symbol.asyncDispose]: async () => {}, ...parts } as World;
    },
  };
}

function lampThatOpens(open: (...call: Parameters<Environment["open"]>) => unknown): Environment {
  return { ...lamp(), open: open as Environment["open"] };
}

const qwenAgent = createToolCallingAgent({
  parser: findToolCallParser("qwen25"),
  toolUsePolicy: toolUsePolicies.many,
});

/** A user with parts of its conversation replaced. */
function userWith(parts: { readonly [Key in keyof UserSession]?: unknown }): User {
  const user = createScriptedUser({ lines: ["Lamp on, please.", { text: "Bye.", leaves: true }] });
  return {
    strategy: "odd",
    open: (...given) => ({ ...user.open(...given), ...parts }) as UserSession,
  };
}

function fail(message: string): never {
  throw new TypeError(message);
}

function circularError(): Error {
  const error = new Error("round and round");
  error.cause = error;
  return error;
}

/** An agent that reads rightly, and then some. */
function agentThatReads(change: (reading: Reading) => object): Agent {
  return { ...qwenAgent, read: (turn) => change(qwenAgent.read(turn)) as Reading };
}

function revoked(): object {
  const { proxy, revoke } = Proxy.revocable({}, {});
  revoke();
  return proxy;
}

/** Lists in lists, `depth` levels deep. */
function nested(depth: number): unknown {
  let value: unknown = [];
  for (let level = 1; level < depth; level++) value = [value];
  return value;
}

/** A list that was filled by places, from the second on. */
function holed(entry: unknown): unknown[] {
  const list: unknown[] = [];
  list[1] = entry;
  return list;
}

const intent = { type: "refuse", callId: "c", name: "switch", observation: "no" };
const toolCall = { id: "c", name: "switch", argumentsText: "{}" };

const circle: Record<string, unknown> = {};
circle["self"] = circle;

const noUsage = { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 };
const goodTurns = [says(switchCall), says("Goodbye!")];
const notPlain = {
  get details(): never {
    return fail("no details today");
  },
};

/** Errors of foreign code, and the parties that the episode blames for them. */
const faults: readonly {
  readonly name: string;
  readonly environment?: Environment;
  readonly user?: User;
  readonly agent?: Agent;
  readonly engine?: Engine;
  readonly renderer?: Renderer;
  readonly code: string;
  readonly message: string;
  /** The failure reports the tokens that were sampled in vain. */
  readonly hasDiscarded?: true;
}[] = [
  {
    name: "opening a world throws",
    environment: lampThatOpens(() => fail("no database")),
    code: "environment/exception",
    message: "Cannot open task lamp/test/0: no database",
  },
  {
    name: "opening a world rejects with a text",
    // eslint-disable-next-line typescript/prefer-promise-reject-errors
    environment: lampThatOpens(() => Promise.reject("disk")),
    code: "environment/exception",
    message: "Cannot open task lamp/test/0: disk",
  },
  {
    name: "opening a world throws a failure of an unknown party",
    environment: lampThatOpens(() => {
      throw new RolloutError("disk/full" as never, "no room");
    }),
    code: "environment/exception",
    message: "Cannot open task lamp/test/0: no room",
  },
  {
    name: "opening a world throws a failure that cannot be written",
    environment: lampThatOpens(() => {
      throw new RolloutError("environment/full", "no room", { discarded: [1n] as never });
    }),
    code: "environment/exception",
    message: "Cannot open task lamp/test/0: no room",
  },
  {
    name: "opening a world throws what cannot be read",
    environment: lampThatOpens(() => {
      throw new Proxy(new Error("disk"), {
        get: () => fail("no"),
        getPrototypeOf: () => fail("no"),
      });
    }),
    code: "environment/exception",
    message: "Cannot open task lamp/test/0: an object without a text",
  },
  {
    name: "opening a world returns nothing",
    environment: lampThatOpens(() => undefined),
    code: "environment/bad-world",
    message:
      "Cannot use the answer of environment.open() for task lamp/test/0: it returned nothing (a forgotten return?), expected a World",
  },
  {
    name: "a world has no disposer",
    environment: lampThatOpens(() => ({
      begin: fail,
      step: fail,
      score: fail,
      userUsage: fail,
    })),
    code: "environment/bad-world",
    message:
      "Cannot use the answer of environment.open() for task lamp/test/0: it has no method [Symbol.asyncDispose], expected one, if an empty one",
  },
  {
    name: "a world has no step()",
    environment: lampWith({ step: undefined }),
    code: "environment/bad-world",
    message:
      "Cannot use the answer of environment.open() for task lamp/test/0: its step is nothing, expected a method",
  },
  {
    name: "the opening line is an object",
    environment: lampWith({ begin: () => ({ text: "Hi" }) }),
    code: "environment/bad-step",
    message:
      "Cannot use the answer of world.begin() in task lamp/test/0 of lamp: it returned an object with text, expected a text",
  },
  {
    name: "a step forgets its return",
    environment: lampWith({ step: () => undefined }),
    code: "environment/bad-step",
    message:
      "Cannot use the answer of world.step() for tool switch in task lamp/test/0 of lamp: it returned nothing (a forgotten return?), expected a Step",
  },
  {
    name: "an observation is an object",
    environment: lampWith({
      step: () => ({ observation: { on: true }, from: "tool", source: "switch" }),
    }),
    code: "environment/bad-step",
    message:
      "Cannot use the answer of world.step() for tool switch in task lamp/test/0 of lamp: observation is an object with on, expected a text (serialise it)",
  },
  {
    name: "a step is done without a reason",
    environment: lampWith({
      step: () => ({ observation: "on", from: "tool", source: "switch", done: true }),
    }),
    code: "environment/bad-step",
    message:
      'Cannot use the answer of world.step() for tool switch in task lamp/test/0 of lamp: done is true, expected one of "user-left", "terminal-tool", "finished", or nothing',
  },
  {
    name: "a step comes from nowhere",
    environment: lampWith({ step: () => ({ observation: "on", source: "switch" }) }),
    code: "environment/bad-step",
    message:
      'Cannot use the answer of world.step() for tool switch in task lamp/test/0 of lamp: from is nothing, expected "tool" or "user"',
  },
  ...(
    [
      [Number.NaN, "NaN"],
      ["1", '"1"'],
      [undefined, "nothing"],
      [10n, "10n"],
      [Infinity, "Infinity"],
    ] as const
  ).map(([reward, shown]) => ({
    name: `the reward is ${shown}`,
    environment: lampWith({ score: async () => ({ reward, details: {} }) }),
    code: "grader/bad-score",
    message: `Cannot use the answer of world.score() in task lamp/test/0 of lamp: reward is ${shown}, expected a finite number`,
  })),
  {
    name: "the reward is one that no trainer can hold",
    environment: lampWith({ score: async () => ({ reward: -1e39, details: {} }) }),
    code: "grader/bad-score",
    message:
      "Cannot use the answer of world.score() in task lamp/test/0 of lamp: reward is -1e+39, expected one that is finite in 32 bits, as trainers hold it",
  },
  {
    name: "details hold a bigint",
    environment: lampWith({ score: async () => ({ reward: 1, details: { n: 10n } }) }),
    code: "grader/bad-score",
    message:
      "Cannot use the answer of world.score() in task lamp/test/0 of lamp: details cannot be written as JSON (Do not know how to serialize a BigInt), expected plain values",
  },
  {
    name: "details nest deeper than a row may",
    environment: lampWith({ score: async () => ({ reward: 1, details: { tree: nested(400) } }) }),
    code: "grader/bad-score",
    message:
      "Cannot use the answer of world.score() in task lamp/test/0 of lamp: details cannot be written as JSON (it nests deeper than 400 lists and objects), expected plain values",
  },
  {
    name: "a score holds more that is no JSON",
    environment: lampWith({ score: async () => ({ reward: 1, details: {}, raw: 10n }) }),
    code: "grader/bad-score",
    message:
      "Cannot use the answer of world.score() in task lamp/test/0 of lamp: raw cannot be written as JSON (Do not know how to serialize a BigInt), expected plain values",
  },
  {
    name: "a step holds more that is no JSON",
    environment: lampWith({
      step: () => ({ observation: "on", from: "tool", source: "switch", raw: circle }),
    }),
    code: "environment/bad-step",
    message:
      "Cannot use the answer of world.step() for tool switch in task lamp/test/0 of lamp: raw cannot be written as JSON (Converting circular structure to JSON), expected plain values",
  },
  {
    name: "what comes from outside is no JSON",
    environment: lampThatOpens(async (task, options) => {
      const world = await lamp().open(task, options);
      return {
        ...world,
        [Symbol.asyncDispose]: async () => {},
        step: async () => await options.outside!("GET /lamp", async () => ({ watts: 10n })),
      };
    }),
    code: "environment/exception",
    message:
      "Cannot call tool switch in task lamp/test/0: what GET /lamp brought back cannot be written as JSON (Do not know how to serialize a BigInt), expected plain values",
  },
  {
    name: "a tool's definition holds what no JSON has",
    environment: lampWith({ tools: [{ name: "switch", openai: new Map([["type", undefined]]) }] }),
    code: "environment/bad-world",
    message:
      "Cannot use the answer of environment.open() for task lamp/test/0: tools[0] is an object with name, openai, expected a tool (see toolFromOpenAi())",
  },
  {
    name: "a world's tool is shown by another name than it is called by",
    environment: lampWith({ tools: [{ ...lamp().tools[0]!, name: "turn_on" }] }),
    code: "environment/bad-world",
    message:
      'Cannot use the answer of environment.open() for task lamp/test/0: tools[0] is named "turn_on", and "switch" in its definition, expected one name (see toolFromOpenAi())',
  },
  {
    name: "an environment's tool is shown by another name than it is called by",
    environment: { ...lamp(), tools: [{ ...lamp().tools[0]!, name: "turn_on" }] },
    code: "environment/bad-world",
    message:
      'Cannot use the answer of environment.tools of lamp: tools[0] is named "turn_on", and "switch" in its definition, expected one name (see toolFromOpenAi())',
  },
  ...(
    [
      [undefined, "nothing"],
      [5, "5"],
      [null, "null"],
      [["Be nice."], "a list"],
    ] as const
  ).map(([policyText, shown]) => ({
    name: `an environment's policy text is ${shown}`,
    environment: { ...lamp(), policyText } as unknown as Environment,
    agent: createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      toolUsePolicy: toolUsePolicies.one,
    }),
    code: "environment/bad-world",
    message: `Cannot use the answer of environment.policyText of lamp: it is ${shown}, expected a text`,
  })),
  {
    name: "a world's policy text is none any more when it has begun",
    environment: lampThatOpens(async (task, options) => {
      const world = await lamp().open(task, options);
      let hasBegun = false;
      const begin: World["begin"] = async (call) => {
        hasBegun = true;
        return await world.begin(call);
      };
      const policyText = { get: () => (hasBegun ? 5 : "Switch it.") };
      return Object.defineProperty({ ...world, begin }, "policyText", policyText);
    }),
    code: "environment/bad-world",
    message: "Cannot use the answer of world.policyText of lamp: it is 5, expected a text",
  },
  {
    name: "an agent's tool is shown by another name than it is called by",
    agent: {
      ...qwenAgent,
      open: (start) => ({
        ...qwenAgent.open(start),
        tools: [{ ...lamp().tools[0]!, name: "turn_on" }],
      }),
    },
    code: "agent/bad-opening",
    message:
      'Cannot use the answer of agent.open() of tool-calling: tools[0] is named "turn_on", and "switch" in its definition, expected one name (see toolFromOpenAi())',
  },
  ...(
    [
      [{ attemptCounts: { ok: "1" } }, 'attemptCounts.ok is "1", expected a count'],
      [{ attemptCounts: { ok: 1n } }, "attemptCounts.ok is 1n, expected a count"],
      [
        { message: { role: "assistant", content: "Hi", raw: circle } },
        "message.raw cannot be written as JSON (Converting circular structure to JSON), expected plain values",
      ],
      [
        { form: { attempts: [{ span: [0, 1] }], leakedMarkup: false, thinkingMalformed: false } },
        "form.attempts[0] is an object with span, expected an attempt with its span and status",
      ],
      [
        { form: { attempts: [], leakedMarkup: "no", thinkingMalformed: false } },
        'form.leakedMarkup is "no", expected true or false',
      ],
      ...(
        [
          [7, 3],
          [0, 900],
        ] as const
      ).map(
        (span) =>
          [
            {
              form: {
                attempts: [{ span, status: "ok" }],
                leakedMarkup: false,
                thinkingMalformed: false,
              },
            },
            `form.attempts[0].span is ${span.join(" to ")}, expected a stretch of the ${switchCall.length + "<|stop|>".length} characters that were sampled`,
          ] as const,
      ),
      [
        {
          intents: [
            {
              type: "act",
              callId: "c",
              action: { type: "call", name: "switch", arguments: new Map([["on", undefined]]) },
            },
          ],
        },
        "the arguments of switch cannot be written as JSON (value is not iterable), expected plain values",
      ],
      [{ intents: holed(intent) }, "intents[0] is nothing, expected an intent"],
      [
        { intents: {} },
        "intents is an object with no fields, expected a list with one that is not ignored",
      ],
      [
        { message: { role: "assistant", content: "", toolCalls: holed(toolCall) } },
        "message.toolCalls[0] is nothing, expected a tool call",
      ],
      [
        { message: { role: "assistant", content: "", toolCalls: [{ ...toolCall, id: 7 }] } },
        "message.toolCalls[0].id is 7, expected a text",
      ],
      [
        {
          form: {
            attempts: holed({ span: [0, 1], status: "ok" }),
            leakedMarkup: false,
            thinkingMalformed: false,
          },
        },
        "form.attempts[0] is nothing, expected an attempt with its span and status",
      ],
      [
        {
          intents: [
            {
              type: "act",
              callId: "c",
              action: { type: "call", name: "switch", arguments: new Map([["on", holed(1)]]) },
            },
          ],
        },
        "the arguments of switch cannot be written as JSON (value is not iterable), expected plain values",
      ],
    ] as const
  ).map(([more, what]) => ({
    name: `an agent reads, and ${what}`,
    agent: agentThatReads((reading) => ({ ...reading, ...more })),
    code: "agent/bad-reading",
    message: `Cannot use the answer of agent.read() of tool-calling: ${what}`,
  })),
  {
    name: "an engine's reply holds more that is no JSON",
    engine: preparedEngine([{ ...says("Hi"), usage: circle } as never]),
    code: "engine/bad-reply",
    message:
      "Cannot use the engine's reply to request lamp/test/0#0:1:0;: usage cannot be written as JSON (Converting circular structure to JSON), expected plain values",
    hasDiscarded: true,
  },
  {
    name: "an engine says that a request waited for no time that is known",
    engine: preparedEngine([{ ...says("Hi"), queueMs: Number.NaN }]),
    code: "engine/bad-reply",
    message:
      "Cannot use the engine's reply to request lamp/test/0#0:1:0;: queueMs is NaN, expected a number of milliseconds",
    hasDiscarded: true,
  },
  {
    name: "a score's details throw",
    environment: lampWith({ score: () => notPlain }),
    code: "grader/exception",
    message: "Cannot score task lamp/test/0: no details today",
  },
  {
    name: "opening a user throws",
    user: { strategy: "odd", open: () => fail("no persona") },
    code: "user/exception",
    message: "Cannot open a conversation about task lamp/test/0 with user odd: no persona",
  },
  {
    name: "an engine throws plainly",
    engine: preparedEngine([says(switchCall), new TypeError("fetch failed")]),
    code: "engine/exception",
    message: "Cannot sample turn lamp/test/0#0:1:1;: fetch failed",
  },
  ...(
    [
      [{ outputIds: [5_000_000] }, "sampled id 0 is 5000000, expected an id, 0 to 1114113"],
      [
        { outputIds: [7], logprobs: [-1e308] },
        "the logprob of sampled id 7 is -1e+308, expected a logarithm, -10000 to 0.000001",
      ],
      [
        { outputIds: [7, 7], logprobs: [0] },
        "2 ids were sampled with 1 logprobs, expected one logprob for each id",
      ],
      [{ outputIds: [7], pieces: [] }, "the pieces are of 0 ids, expected all 1"],
      [{ outputIds: "seven" }, 'outputIds is "seven", expected a list'],
      [{ outputIds: [7], finish: "stop" }, 'finish is "stop", expected `stop` or `length`'],
      [{ outputIds: [], logprobs: [], pieces: [] }, "no ids were sampled, expected at least one"],
    ] as const
  ).map(([reply, what]) => ({
    name: `an engine returns ${JSON.stringify(reply)}`,
    engine: {
      ...preparedEngine([]),
      generate: async () =>
        ({
          logprobs: [-0.5],
          finish: { type: "stop" },
          pieces: [{ requestId: "r", tokenCount: 1, policyVersion: "", finish: "stop" }],
          discarded: [],
          ...reply,
        }) as unknown as Generation,
    },
    code: "engine/bad-reply",
    message: `Cannot use the engine's reply to request lamp/test/0#0:1:0;: ${what}`,
    hasDiscarded: true as const,
  })),
  {
    name: "an engine throws what has no text",
    // eslint-disable-next-line typescript/prefer-promise-reject-errors
    engine: { ...preparedEngine([]), generate: () => Promise.reject(Object.create(null)) },
    code: "engine/exception",
    message: "Cannot sample turn lamp/test/0#0:1:0;: an object without a text",
  },
  {
    name: "an engine throws an error that is its own cause",
    engine: preparedEngine([circularError()]),
    code: "engine/exception",
    message: "Cannot sample turn lamp/test/0#0:1:0;: round and round",
  },
  {
    name: "an engine discards what cannot be written",
    engine: preparedEngine([
      { ...says("Hi"), discarded: [{ requestId: "r", reason: "late", tokenCount: 1n as never }] },
    ]),
    code: "engine/bad-reply",
    message:
      "Cannot use the engine's reply to request lamp/test/0#0:1:0;: discarded[0] is not JSON, expected discarded tokens, with their request's id and the reason",
    hasDiscarded: true,
  },
  {
    name: "the chat template prints nothing of what an agent opens with",
    renderer: { ...createCharacterRenderer(), prompt: async () => ({ ids: [], text: "" }) },
    code: "agent/bad-opening",
    message:
      "Cannot use the answer of agent.open() of tool-calling: the chat template prints nothing, expected a prompt",
  },
  {
    name: "an agent opens with what can be asked for nothing",
    agent: { ...qwenAgent, open: () => revoked() as never },
    code: "agent/exception",
    message:
      "Cannot open the conversation in task lamp/test/0 as agent tool-calling: Cannot perform 'get' on a proxy that has been revoked",
  },
  {
    name: "opening a user returns what can be asked for nothing",
    user: { ...createScriptedUser({ lines: ["Hi"] }), open: () => revoked() as never },
    code: "user/exception",
    message:
      "Cannot open a conversation about task lamp/test/0 with user scripted: Cannot perform 'get' on a proxy that has been revoked",
  },
  {
    name: "a world shares a call with another episode, whose playback ended there",
    environment: lampWith({
      step: () => {
        throw new PlaybackStop("the recording of another ends where a call is made");
      },
    }),
    code: "environment/exception",
    message:
      "Cannot call tool switch in task lamp/test/0: the recording of another ends where a call is made",
  },
  {
    name: "an agent cannot open",
    agent: { ...qwenAgent, open: () => fail("no prompt") },
    code: "agent/exception",
    message: "Cannot open the conversation in task lamp/test/0 as agent tool-calling: no prompt",
  },
  {
    name: "an agent opens with what the chat template refuses",
    renderer: {
      ...createCharacterRenderer(),
      prompt: () => Promise.reject(new ConversationRefusal("Cannot render the conversation: No.")),
    },
    code: "agent/bad-opening",
    message:
      "Cannot use the answer of agent.open() of tool-calling: Cannot render the conversation: No.",
  },
  {
    name: "an agent cannot read",
    agent: { ...qwenAgent, read: () => fail("undefined is not a function") },
    code: "agent/exception",
    message:
      "Cannot read turn 0 in task lamp/test/0 as agent tool-calling: undefined is not a function",
  },
  {
    name: "an agent reads nothing",
    agent: { ...qwenAgent, read: () => undefined as never },
    code: "agent/bad-reading",
    message:
      "Cannot use the answer of agent.read() of tool-calling: it returned nothing (a forgotten return?), expected a Reading",
  },
  ...(
    [
      [undefined, "it returned nothing (a forgotten return?), expected an Opening"],
      [{ messages: "Hi", tools: [] }, 'messages is "Hi", expected a list of messages'],
      [
        { messages: [{ role: "robot", content: "Hi" }], tools: [] },
        'messages[0].role is "robot", expected one of "system", "user", "assistant", "tool"',
      ],
      [
        { messages: [{ role: "user", content: { text: "Hi" } }], tools: [] },
        "messages[0].content is an object with text, expected a text",
      ],
      [
        { messages: [{ role: "user", content: "Hi" }] },
        "tools is nothing, expected a list of tools",
      ],
    ] as const
  ).map(([opening, what]) => ({
    name: `an agent opens with ${JSON.stringify(opening)}`,
    agent: { ...qwenAgent, open: () => opening as never },
    code: "agent/bad-opening",
    message: `Cannot use the answer of agent.open() of tool-calling: ${what}`,
  })),
  ...(
    [
      [{ content: 7 }, {}, "message.content is 7, expected a text"],
      [{}, { type: "jump" }, 'intents[0].type is "jump", expected "act", "refuse" or "ignore"'],
      [{}, { type: "act", callId: "c" }, "intents[0].action is nothing, expected an action"],
      [
        {},
        { type: "act", callId: "c", action: { type: "call", name: "switch", arguments: {} } },
        "intents[0].action.arguments is an object with no fields, expected a Map",
      ],
      [
        {},
        { type: "refuse", callId: "c", name: "switch" },
        "intents[0].observation is nothing, expected a text",
      ],
      [
        { toolCalls: [{ id: "c", name: "switch" }] },
        {},
        "message.toolCalls[0].argumentsText is nothing, expected a text",
      ],
    ] as const
  ).map(([message, intent, what]) => ({
    name: `an agent reads that ${what}`,
    agent: {
      ...qwenAgent,
      read: () =>
        ({
          message: { role: "assistant", content: "Hi", ...message },
          reasoning: "",
          intents: [
            { type: "act", callId: "c", action: { type: "say", content: "Hi" } },
            ...(Object.keys(intent).length === 0 ? [] : [intent]),
          ].toReversed(),
          attemptCounts: {},
        }) as never,
    },
    code: "agent/bad-reading",
    message: `Cannot use the answer of agent.read() of tool-calling: ${what}`,
  })),
  ...(
    [
      ["begin", () => undefined, "it returned nothing (a forgotten return?), expected a text"],
      ["begin", () => 5, "it returned 5, expected a text"],
      [
        "begin",
        () => ({ text: "Hi", leaves: true }),
        "it returned an object with text, leaves, expected a text",
      ],
      [
        "reply",
        () => undefined,
        'it returned nothing (a forgotten return?), expected a text, or { text: "…", leaves: true }',
      ],
      ["reply", () => 7, 'it returned 7, expected a text, or { text: "…", leaves: true }'],
      [
        "reply",
        () => ({ text: 5, leaves: true }),
        'it returned an object with text, leaves, expected a text, or { text: "…", leaves: true }',
      ],
    ] as const
  ).map(([method, says, what]) => ({
    name: `a user's ${method}() says what is no line, and ${what}`,
    user: userWith({ [method]: async () => says() }),
    code: "user/bad-line",
    message: `Cannot use the answer of user.${method}() of odd in task lamp/test/0: ${what}`,
  })),
  {
    name: "a user cannot begin",
    user: userWith({ begin: () => fail("no mood") }),
    code: "user/exception",
    message: "Cannot hear the user's first line of task lamp/test/0: no mood",
  },
  {
    name: "a user cannot reply",
    user: userWith({ reply: () => fail("no mood") }),
    code: "user/exception",
    message: "Cannot hear the user's reply in task lamp/test/0: no mood",
  },
  {
    name: "a world cannot begin",
    environment: lampWith({ begin: () => fail("no database") }),
    code: "environment/exception",
    message: "Cannot begin task lamp/test/0: no database",
  },
  {
    name: "a world cannot pass on what was said",
    environment: lampThatOpens(async (task, options) => {
      const world = await lamp().open(task, options);
      const step = world.step.bind(world);
      world.step = async (action, call) => {
        const stepped = await step(action, call);
        return action.type === "say" ? fail("no database") : stepped;
      };
      return world;
    }),
    code: "environment/exception",
    message: "Cannot pass on what the agent said in task lamp/test/0: no database",
  },
  {
    name: "an agent shows no message",
    agent: { ...qwenAgent, observe: () => [] },
    code: "agent/bad-messages",
    message:
      "Cannot use the answer of agent.observe() of tool-calling: it returned an empty list, expected at least one message",
  },
  {
    name: "an agent shows nothing",
    agent: { ...qwenAgent, observe: () => undefined as never },
    code: "agent/bad-messages",
    message:
      "Cannot use the answer of agent.observe() of tool-calling: it returned nothing (a forgotten return?), expected a list of messages",
  },
  {
    name: "a world's tools are OpenAI's",
    environment: lampWith({ tools: [{ type: "function", function: { name: "dim" } }] }),
    code: "environment/bad-world",
    message:
      "Cannot use the answer of environment.open() for task lamp/test/0: tools[0] is an object with type, function, expected a tool (see toolFromOpenAi())",
  },
  {
    name: "opening a user returns nothing",
    user: { strategy: "odd", open: () => undefined as never },
    code: "user/bad-session",
    message:
      "Cannot use the answer of user.open() of odd for task lamp/test/0: it returned nothing (a forgotten return?), expected a UserSession",
  },
  {
    name: "a session cannot be looked at",
    user: {
      strategy: "odd",
      open: () =>
        ({
          get begin(): never {
            return fail("no line today");
          },
        }) as never,
    },
    code: "user/exception",
    message: "Cannot open a conversation about task lamp/test/0 with user odd: no line today",
  },
  {
    name: "an opening cannot be looked at",
    agent: {
      ...qwenAgent,
      open: () =>
        ({
          get messages(): never {
            return fail("no messages today");
          },
        }) as never,
    },
    code: "agent/exception",
    message: "Cannot use the opening in task lamp/test/0 as agent tool-calling: no messages today",
  },
  {
    name: "a reading cannot be looked at",
    agent: agentThatReads((reading) => ({
      ...reading,
      get attemptCounts(): never {
        return fail("no counts today");
      },
    })),
    code: "agent/exception",
    message: "Cannot read turn 0 in task lamp/test/0 as agent tool-calling: no counts today",
  },
  {
    name: "messages cannot be looked at",
    agent: {
      ...qwenAgent,
      observe: () =>
        [
          {
            get role(): never {
              return fail("no role today");
            },
          },
        ] as never,
    },
    code: "agent/exception",
    message:
      "Cannot use what shows observations in task lamp/test/0 as agent tool-calling: no role today",
  },
  {
    name: "an agent shows observations, and nothing was put in the first place",
    agent: { ...qwenAgent, observe: () => holed({ role: "user", content: "on" }) as never },
    code: "agent/bad-messages",
    message:
      "Cannot use the answer of agent.observe() of tool-calling: messages[0] is nothing, expected a message",
  },
  ...(
    [
      [
        { messages: holed({ role: "user", content: "on" }) },
        "messages[0] is nothing, expected a message",
      ],
      [
        { tools: holed(lamp().tools[0]) },
        "tools[0] is nothing, expected a tool (see toolFromOpenAi())",
      ],
    ] as const
  ).map(([more, what]) => ({
    name: `an agent opens the conversation, and ${what}`,
    agent: { ...qwenAgent, open: (start) => ({ ...qwenAgent.open(start), ...more }) } as Agent,
    code: "agent/bad-opening",
    message: `Cannot use the answer of agent.open() of tool-calling: ${what}`,
  })),
  {
    name: "an agent cannot show observations",
    agent: { ...qwenAgent, observe: () => fail("what?") },
    code: "agent/exception",
    message: "Cannot show observations in task lamp/test/0 as agent tool-calling: what?",
  },
];

describe("foreign code", () => {
  test.each(faults)("$name", async (fault) => {
    const { code, message } = fault;
    const { episode, troubles } = await play(goodTurns, fault);
    const discarded = fault.hasDiscarded ? { discarded: [expect.anything()] } : {};
    expect(episode.failure).toEqual({ party: code.split("/")[0], code, message, ...discarded });
    expect(episode).toMatchObject({ outcome: "failed", stopReason: "failure" });
    expect(episode).not.toHaveProperty("reward");
    expect(troubles.at(-1)).toMatchObject({ code });
  });

  test("is reported with the stack of its error", async () => {
    const environment = lampWith({ score: () => fail("no rubric") });
    const { troubles } = await play(goodTurns, { environment });
    expect(describeStack(troubles[0])).toMatch(
      /RolloutError: Cannot score task lamp\/test\/0: no rubric[^]*Caused by: TypeError: no rubric\n\s+at fail /,
    );
  });

  test.each<[string, (promptIds: Int32Array) => void]>([
    ["sorting", (promptIds) => promptIds.sort((one, other) => other - one)],
    ["emptying", (promptIds) => promptIds.fill(0)],
    ["putting a number below 0 among", (promptIds) => (promptIds[0] = -1)],
    [
      "transferring the memory of",
      ({ buffer }) => structuredClone(buffer, { transfer: [buffer as ArrayBuffer] }),
    ],
  ])("loses the episode, and no more, by %s the ids that it is sent", async (_, change) => {
    const engine = preparedEngine(goodTurns);
    const { episode } = await play([], {
      engine: {
        ...engine,
        async generate(request, options) {
          const generation = await engine.generate(request, options);
          change(request.promptIds as Int32Array);
          return generation;
        },
      },
    });
    expect(episode).toMatchObject({ outcome: "failed", stopReason: "failure", segments: [] });
    expect(episode.failure).toEqual({
      party: "engine",
      code: "engine/bad-reply",
      message:
        "Cannot use the ids of lamp/test/0#0: the engine prepared wrote into the list of ids that it " +
        "was sent, expected it to leave that as it is",
    });
    expect(episode).not.toHaveProperty("reward");
  });

  test.each([-1, 7])(
    "loses only the episode if it replaces its last sampled value by %d",
    async (id) => {
      const engine = preparedEngine(goodTurns);
      let kept = new Int32Array();
      const { episode } = await play([], {
        engine: {
          ...engine,
          async generate(request, options) {
            kept = request.promptIds as Int32Array<ArrayBuffer>;
            return await engine.generate(request, options);
          },
        },
        environment: lamp(() => {
          kept[kept.length - 1] = id;
          return undefined;
        }),
      });
      expect(episode).toMatchObject({ outcome: "failed", segments: [] });
      expect(episode.failure?.code).toBe("engine/bad-reply");
    },
  );

  test.each([0, 1, 2, 3, 4, 5, 6, 7])(
    "fails alone if reading a member of the world throws the %ith time",
    async (readCount) => {
      let left = readCount;
      let openCount = 0;
      const environment = lampThatOpens(async (task, options) => {
        const world = await lamp().open(task, options);
        openCount += 1;
        world[Symbol.asyncDispose] = async () => void (openCount -= 1);
        return Object.defineProperty(world, "policyText", {
          get: () => (left-- > 0 ? "Switch it." : fail("no text today")),
        });
      });
      const { episode } = await play(goodTurns, { environment });
      if (episode.failure === undefined) expect(left).toBeGreaterThanOrEqual(0);
      else expect(episode.failure.code).toBe("environment/exception");
      // A value that cannot be read is not disposed of.
      if (readCount > 2) expect(openCount).toBe(0);
    },
  );

  test("cannot add a tool to other episodes", async () => {
    const environment = lamp();
    const [tool] = environment.tools;
    const agent: Agent = {
      ...qwenAgent,
      open: (start) => {
        (start.tools as object[]).push({ ...tool, name: "dim" });
        return qwenAgent.open(start);
      },
    };
    await play(goodTurns, { environment, agent });
    expect(environment.tools.map(({ name }) => name)).toEqual(["switch"]);
  });

  test("keeps each reading of an agent that returns the same objects each time", async () => {
    const message: Record<string, unknown> = {};
    const attemptCounts: Record<string, number> = {};
    const intents: Reading["intents"][number][] = [];
    const shown: Record<string, unknown>[] = [];
    const spans: number[][] = [];
    const refill = (target: Record<string, unknown>, from: object): void => {
      for (const key of Object.keys(target)) delete target[key];
      Object.assign(target, from);
    };
    const agent: Agent = {
      ...qwenAgent,
      read(turn) {
        const reading = qwenAgent.read(turn);
        refill(message, reading.message);
        refill(attemptCounts, reading.attemptCounts);
        intents.splice(0, intents.length, ...reading.intents);
        const attempts = reading.form!.attempts.map((attempt, index) => {
          const span = (spans[index] ??= []);
          span.splice(0, 2, ...attempt.span);
          return { ...attempt, span };
        });
        const form = { ...reading.form, attempts };
        return { ...reading, message, attemptCounts, intents, form } as unknown as Reading;
      },
      observe(observed) {
        const messages = qwenAgent.observe(observed);
        messages.forEach((each, index) => refill((shown[index] ??= {}), each));
        return shown.slice(0, messages.length) as never;
      },
    };
    const turns = [
      says(`${switchCall}\n${switchCall}`),
      says(`Once more: ${switchCall}`),
      says("Goodbye!"),
    ];
    const { episode } = await play(turns, { agent });
    const { episode: expected } = await play(turns);
    expect(JSON.stringify(episode)).toBe(JSON.stringify(expected));
  });

  test("performs the parsed calls even if the agent changes their arguments meanwhile", async () => {
    const given = new Map<string, PyValue>();
    const agent: Agent = {
      ...qwenAgent,
      read(turn) {
        const reading = qwenAgent.read(turn);
        given.set("level", 3n);
        const intents = reading.intents.map((intent) =>
          intent.type === "act" && intent.action.type === "call"
            ? { ...intent, action: { ...intent.action, arguments: given } }
            : intent,
        );
        return { ...reading, intents };
      },
    };
    // Another episode's turn is read while the first call is performed.
    const environment = lamp(() => {
      given.clear();
      return undefined;
    });
    const turns = [says(`${switchCall}\n${switchCall}`), says("Goodbye!")];
    const { episode } = await play(turns, { agent, environment });
    const [turn] = episode.turns;
    expect(turn!.steps.map((step) => step.arguments)).toEqual(['{"level": 3}', '{"level": 3}']);
  });

  test("shows the policy the complete message of the agent", async () => {
    class Told {
      readonly content: string;
      constructor(content: string) {
        this.content = content;
      }
      get role(): "user" {
        return "user";
      }
    }
    const agent: Agent = {
      ...qwenAgent,
      observe: (observed) => observed.map(({ text }) => new Told(text)),
    };
    const { episode } = await play(goodTurns, { agent });
    expect(episode).toMatchObject({
      outcome: "failed",
      failure: {
        code: "agent/bad-messages",
        message: expect.stringContaining("messages[0].role is nothing") as string,
      },
    });
  });

  test("keeps score details and user usage after the world is disposed of", async () => {
    const details = { seen: ["on"] };
    const usage = { callCount: 1, inputTokenCount: 2, outputTokenCount: 3 };
    const user = createScriptedUser({
      lines: ["Lamp on, please.", { text: "Bye.", leaves: true }],
    });
    const { episode } = await play(goodTurns, {
      environment: lampWith({
        score: async () => ({ reward: 1, details }),
        [Symbol.asyncDispose]: async () => void (details.seen.length = 0),
      }),
      user: {
        ...user,
        open: (task, options) => ({ ...user.open(task, options), usage: () => usage }),
      },
    });
    usage.callCount = 7;
    expect(episode.rewardDetails).toEqual({ seen: ["on"] });
    expect(episode.userUsage).toEqual({ callCount: 1, inputTokenCount: 2, outputTokenCount: 3 });
  });

  test("cannot take the score from an episode by failing to dispose of its world", async () => {
    const environment = lampWith({ [Symbol.asyncDispose]: () => fail("container is gone") });
    const { episode, troubles } = await play(goodTurns, { environment });
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
    expect(troubles.map(({ code, message }) => [code, message])).toEqual([
      [
        "environment/exception",
        "Cannot dispose of the world of task lamp/test/0: container is gone",
      ],
    ]);
  });

  test("cannot hang an episode by never disposing of its world, nor by never opening it", async () => {
    const hand = createManualClock();
    const clock = createClock(hand);
    const never = (): Promise<never> => new Promise(() => {});
    const { promise: asked, resolve } = createDeferred<AbortSignal | undefined>();
    const disposing = play(goodTurns, {
      environment: lampWith({
        [Symbol.asyncDispose]: (options?: { readonly signal: AbortSignal }) => {
          resolve(options?.signal);
          return never();
        },
      }),
      clock,
      limits: { toolTimeoutMs: 1234, userTimeoutMs: 99_999 },
    });
    const limit = await asked;
    await hand.advance(1233);
    expect(limit?.aborted).toBe(false);
    await hand.advance(1);
    expect(limit?.aborted).toBe(true);
    expect((await disposing).episode).toMatchObject({ outcome: "completed", reward: 1 });

    const opening = play([], {
      environment: lampThatOpens(never),
      clock,
      limits: { toolTimeoutMs: 777 },
    });
    await hand.untilSleeping(777);
    await hand.advance(777);
    expect((await opening).episode.failure?.code).toBe("environment/timeout");
  });

  test("that opens a world too late: the world is disposed of", async () => {
    const hand = createManualClock();
    let disposals = 0;
    let arrive!: (world: unknown) => void;
    const late = new Promise((resolve) => {
      arrive = resolve;
    });
    const playing = play([], {
      environment: lampThatOpens(() => late),
      clock: createClock(hand),
      limits: { toolTimeoutMs: 777 },
    });
    await hand.untilSleeping(777);
    await hand.advance(777);
    await playing;
    const disposed = new Promise<void>((resolve) => {
      arrive({
        begin: fail,
        step: fail,
        score: fail,
        userUsage: fail,
        async [Symbol.asyncDispose]() {
          disposals++;
          resolve();
        },
      });
    });
    await disposed;
    expect(disposals).toBe(1);
  });

  test.each([
    ["throws", () => fail("no bill")],
    [
      "returns what cannot be looked at",
      () => ({
        get callCount(): never {
          return fail("no bill");
        },
      }),
    ],
  ])("that %s when asked for the user's cost does not change the episode", async (_, usage) => {
    const user = createScriptedUser({
      lines: ["Lamp on, please.", { text: "Bye.", leaves: true }],
    });
    const { episode, troubles } = await play(goodTurns, {
      user: {
        strategy: "free",
        open: (...given) => ({ ...user.open(...given), usage: usage as () => never }),
      },
    });
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
    expect(episode.userUsage).toEqual({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 });
    expect(troubles.map(({ code }) => code)).toEqual(["user/exception"]);
  });

  test("may report usage by getters of a class", async () => {
    class Bill {
      readonly outputTokenCount = 3;
      get callCount(): number {
        return 1;
      }
      get inputTokenCount(): number {
        return 2;
      }
      get costUsd(): number {
        return 0.5;
      }
      get quality(): UserUsage["quality"] {
        return { problems: { empty: 1 }, retakeCount: 1 };
      }
    }
    const { episode, troubles } = await play(goodTurns, {
      user: userWith({ usage: () => new Bill() }),
    });
    expect(troubles).toEqual([]);
    expect(episode.userUsage).toStrictEqual({
      callCount: 1,
      inputTokenCount: 2,
      outputTokenCount: 3,
      costUsd: 0.5,
      quality: { problems: { empty: 1 }, retakeCount: 1 },
    });
  });

  test.each([
    [undefined, "it returned nothing (a forgotten return?), expected a UserUsage"],
    [{ callCount: 1 }, "its inputTokenCount is nothing, expected a count"],
    [
      { callCount: 1, inputTokenCount: 1, outputTokenCount: 1, costUsd: Number.NaN },
      "costUsd is NaN, expected a finite number or nothing",
    ],
  ])(
    "that returns %j when asked for the user's cost does not change the episode",
    async (bill, what) => {
      const user = createScriptedUser({
        lines: ["Lamp on, please.", { text: "Bye.", leaves: true }],
      });
      const { episode, troubles } = await play(goodTurns, {
        user: {
          strategy: "free",
          open: (...given) => ({ ...user.open(...given), usage: () => bill as never }),
        },
      });
      expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
      expect(episode.userUsage).toEqual({ callCount: 0, inputTokenCount: 0, outputTokenCount: 0 });
      expect(troubles.map(({ code, message }) => [code, message])).toEqual([
        ["user/bad-usage", `Cannot use the answer of user.usage() of free: ${what}`],
      ]);
    },
  );

  /** A query of a database library: a thenable that is not a promise. */
  const query = (then: (resolve: (value: never) => void, reject: (why: Error) => void) => void) =>
    // eslint-disable-next-line unicorn/no-thenable
    ({ then }) as never;

  const methods = ["open", "read", "observe"] as const;

  test.each<[what: string, gives: () => never]>([
    ["a query", () => query((_, reject) => reject(new Error("connection lost")))],
    [
      "a promise of another realm",
      runInNewContext("async () => { throw new Error('connection lost') }") as () => never,
    ],
    ["a promise", (async () => await Promise.reject(new Error("connection lost"))) as () => never],
  ])("of an agent's that gives %s which fails has failed one episode", async (_, gives) => {
    for (const method of methods) {
      const { episode } = await play(goodTurns, { agent: { ...qwenAgent, [method]: gives } });
      expect(episode.failure).toMatchObject({
        code: "agent/exception",
        message: expect.stringMatching(/: connection lost$/) as string,
      });
    }
  });

  test("may have an agent with async methods", async () => {
    const { episode } = await play(goodTurns, {
      agent: {
        ...qwenAgent,
        open: async (...given: Parameters<Agent["open"]>) => qwenAgent.open(...given),
        read: async (...given: Parameters<Agent["read"]>) => qwenAgent.read(...given),
        observe: async (...given: Parameters<Agent["observe"]>) => qwenAgent.observe(...given),
      } as unknown as Agent,
    });
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
  });

  test.each(methods)("cannot hang an episode by a query for %s()", async (method) => {
    const hand = createManualClock();
    const { promise: asked, resolve } = createDeferred();
    const gives = () => {
      resolve();
      return query(() => {});
    };
    const playing = play(goodTurns, {
      agent: { ...qwenAgent, [method]: gives },
      clock: createClock(hand),
      limits: { toolTimeoutMs: 777 },
    });
    await asked;
    await hand.advance(777);
    const { episode } = await playing;
    expect(episode.failure).toMatchObject({ code: "agent/timeout" });
  });

  test.each<[how: string, then: Parameters<typeof query>[0], codes: readonly string[]]>([
    ["answered", (resolve) => resolve({ ...noUsage, callCount: 3 } as never), []],
    ["refused", (_, reject) => reject(new Error("connection lost")), ["user/exception"]],
    ["left alone", () => {}, ["user/timeout"]],
  ])(
    "that reports the user's cost through a query that is %s ends in time",
    async (how, then, codes) => {
      const hand = createManualClock();
      const user = createScriptedUser({
        lines: ["Lamp on, please.", { text: "Bye.", leaves: true }],
      });
      const { promise: asked, resolve } = createDeferred();
      const usage = () => {
        resolve();
        return query(then);
      };
      const playing = play(goodTurns, {
        user: { strategy: "free", open: (...given) => ({ ...user.open(...given), usage }) },
        clock: createClock(hand),
        limits: { userTimeoutMs: 777, toolTimeoutMs: 99_999 },
      });
      await asked;
      if (how === "left alone") await hand.advance(777);
      const { episode, troubles } = await playing;
      expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
      expect(episode.userUsage.callCount).toBe(how === "answered" ? 3 : 0);
      expect(troubles.map(({ code }) => code)).toEqual(codes);
    },
  );

  type Hang = () => Promise<never>;
  test.each<
    [who: string, code: string, message: string, parts: (hang: Hang) => Parameters<typeof play>[1]]
  >([
    [
      "a user who never begins",
      "user/timeout",
      "Cannot hear the user's first line of task lamp/test/0: no answer within 777 ms",
      (hang) => ({ user: userWith({ begin: hang }) }),
    ],
    [
      "a user who never replies",
      "user/timeout",
      "Cannot hear the user's reply in task lamp/test/0: no answer within 777 ms",
      (hang) => ({ user: userWith({ reply: hang }) }),
    ],
    [
      "a world that never begins",
      "environment/timeout",
      "Cannot begin task lamp/test/0: no answer within 777 ms",
      (hang) => ({ environment: lampWith({ begin: hang }) }),
    ],
    [
      "a world that hangs in a tool, and had given up on a user before",
      "environment/timeout",
      "Cannot call tool switch in task lamp/test/0: no answer within 777 ms",
      (hang) => ({
        user: { ...userWith({ begin: () => new Promise(() => {}) }), repeatable: true },
        environment: lampThatOpens(async (task, options) => {
          const world = await lamp().open(task, options);
          world.begin = async (call) => {
            void options.user.begin(call);
            return "Hello?";
          };
          return { ...world, [Symbol.asyncDispose]: async () => {}, step: hang };
        }),
      }),
    ],
    [
      "a world that never passes on what was said",
      "environment/timeout",
      "Cannot pass on what the agent said in task lamp/test/0: no answer within 777 ms",
      (hang) => ({ environment: lampWith({ step: hang }) }),
    ],
  ])("that hangs is reported by its name: %s", async (_, code, message, parts) => {
    const hand = createManualClock();
    const { promise: asked, resolve } = createDeferred();
    const hang = async (): Promise<never> => {
      resolve();
      return await new Promise(() => {});
    };
    const isTool = message.includes("tool switch");
    const playing = play([says(isTool ? switchCall : "Goodbye!")], {
      ...parts(hang),
      clock: createClock(hand),
      limits: isTool ? { toolTimeoutMs: 777 } : { userTimeoutMs: 777, toolTimeoutMs: 99_999 },
    });
    await asked;
    await hand.advance(777);
    const { episode } = await playing;
    expect(episode.failure).toEqual({ party: code.split("/")[0], code, message });
  });

  test("cannot hang an episode by never reporting usage", async () => {
    const hand = createManualClock();
    const user = createScriptedUser({
      lines: ["Lamp on, please.", { text: "Bye.", leaves: true }],
    });
    const { promise: asked, resolve } = createDeferred();
    const playing = play(goodTurns, {
      user: {
        strategy: "free",
        open: (...given) => ({
          ...user.open(...given),
          usage: () => {
            resolve();
            return new Promise(() => {}) as never;
          },
        }),
      },
      clock: createClock(hand),
      limits: { userTimeoutMs: 777, toolTimeoutMs: 99_999 },
    });
    await asked;
    await hand.advance(777);
    const { episode, troubles } = await playing;
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
    expect(troubles.map(({ code }) => code)).toEqual(["user/timeout"]);
  });
});

test("a world's own tools and policy text replace the environment's", async () => {
  const dim = toolsFromOpenAi(
    toPyValue([{ type: "function", function: { name: "dim", parameters: { type: "object" } } }]),
    "tools",
  );
  const { episode } = await play(
    [
      says('<tool_call>\n{"name": "dim", "arguments": {}}\n</tool_call>'),
      says(switchCall),
      says("Goodbye!"),
    ],
    { environment: lampWith({ tools: dim, policyText: "You dim the lamp." }) },
  );
  expect(episode.messages[0]).toEqual({ role: "system", content: "You dim the lamp." });
  expect(episode.turns.map(({ steps }) => steps[0]!.result)).toEqual(["acted", "refused", "acted"]);
});

describe("a tool that the chat template does not show", () => {
  const hiding = (tool: string): Renderer => ({
    ...createCharacterRenderer(),
    prompt: () => Promise.reject(new HiddenTool(tool, `Cannot show the tool ${tool}.`)),
  });
  const named = (name: string) =>
    toolsFromOpenAi(
      toPyValue([{ type: "function", function: { name, parameters: { type: "object" } } }]),
      "tools",
    );

  test("fails only the episodes of tasks that have it, if other tasks do not", async () => {
    const environment = lampWith({ tools: named("dim") });
    const { episode } = await play(goodTurns, { environment, renderer: hiding("dim") });
    expect(episode).toMatchObject({
      outcome: "failed",
      failure: {
        party: "environment",
        code: "environment/hidden-tool",
        message:
          "Cannot play task lamp/test/0 of lamp with tools of its own: Cannot show the tool dim.",
      },
    });
    expect(episode.reward).toBeUndefined();
  });

  test("ends the run if all tasks have it", async () => {
    await expect(play(goodTurns, { renderer: hiding("switch") })).rejects.toThrow(
      /^Cannot show the tool switch\.$/,
    );
  });

  test("is the agent's failure if the agent added it", async () => {
    const agent: Agent = {
      ...qwenAgent,
      open: (start) => ({ ...qwenAgent.open(start), tools: named("think") }),
    };
    const { episode } = await play(goodTurns, { agent, renderer: hiding("think") });
    expect(episode.failure).toMatchObject({ code: "agent/bad-opening" });
  });
});

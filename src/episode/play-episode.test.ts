import { describe, expect, test } from "vitest";
import { createToolCallingAgent } from "../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../agent/tool-use-policy.ts";
import { createSglangEngine } from "../engine/sglang/sglang-engine.ts";
import type { Action, Environment, Step } from "../environment/environment.ts";
import { InvariantError, RolloutError, assertInvariant } from "../errors.ts";
import type { TurnToContinue } from "../renderer/renderer.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import {
  characterIds,
  createCharacterRenderer,
  characterStopId,
} from "../testing/character-renderer.ts";
import { createScriptedPolicy, startSglangTestServer } from "../testing/index.ts";
import { lamp, lampTask, play, preparedEngine, says, switchCall } from "./lamp-episode.fixture.ts";
import { defaultLimits } from "./limits.ts";
import { playEpisode } from "./play-episode.ts";

describe("playEpisode()", () => {
  test("plays to the user's goodbye, and trains exactly the sampled ids", async () => {
    const { episode, engine } = await play([says(switchCall), says("It is on. Goodbye!")]);
    expect(episode).toMatchObject({
      outcome: "completed",
      stopReason: "user-left",
      reward: 1,
      rewardDetails: { isOn: true },
    });
    const [segment] = episode.segments;
    const trained = segment!.tokenIds.filter((_, index) => segment!.lossMask[index] === 1);
    expect(trained).toEqual([...characterIds(switchCall), ...characterIds("It is on. Goodbye!")]);
    expect(engine.requests.map(({ promptIds }) => promptIds)).toEqual(
      segment!.turns.map(({ start }) => segment!.tokenIds.slice(0, start)),
    );
    expect(await createCharacterRenderer().codec.decode(segment!.tokenIds)).toBe(
      "<|open|>system\nYou switch the lamp.<|stop|><|open|>user\nLamp on, please.<|stop|>" +
        `<|open|>assistant\n${switchCall}<|stop|><|open|>tool\non<|stop|>` +
        "<|open|>assistant\nIt is on. Goodbye!<|stop|>",
    );
    expect(episode.messages.map(({ role, content }) => [role, content])).toEqual([
      ["system", "You switch the lamp."],
      ["user", "Lamp on, please."],
      ["assistant", ""],
      ["tool", "on"],
      ["assistant", "It is on. Goodbye!"],
      ["user", "Bye."],
    ]);
  });

  test("records ids as sampled even if encoding their text gives others", async () => {
    // The character 'é' as one code point, and as a letter with a combining accent.
    const odd = [...Array.from("caf"), "e", "\u0301"].map((character) => character.codePointAt(0)!);
    const { episode } = await play([{ outputIds: [...odd, characterStopId] }]);
    expect(episode.segments[0]!.tokenIds.slice(-6)).toEqual([...odd, characterStopId]);
  });

  test("measures the queue, sampling, parsing, the tools and the user separately", async () => {
    let atMs = 1000;
    const spend = (ms: number): undefined => void (atMs += ms);
    const agent = createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      toolUsePolicy: toolUsePolicies.many,
    });
    const prepared = preparedEngine([{ ...says(switchCall), queueMs: 15 }, says("Goodbye!")]);
    const { episode } = await play([], {
      now: () => atMs,
      engine: {
        ...prepared,
        generate: (...asked) => (spend(40), prepared.generate(...asked)),
      },
      agent: { ...agent, read: (turn) => (spend(7), agent.read(turn)) },
      environment: lamp(({ type }) => spend(type === "say" ? 11 : 5)),
    });
    const times = episode.turns.map(({ engineMs, queueMs, parseMs, environmentMs, userMs }) => {
      return { engineMs, queueMs, parseMs, environmentMs, userMs };
    });
    expect(times).toEqual([
      { engineMs: 40, queueMs: 15, parseMs: 7, environmentMs: 5, userMs: 0 },
      { engineMs: 40, queueMs: undefined, parseMs: 7, environmentMs: 0, userMs: 11 },
    ]);
    expect(episode.turns[1]).not.toHaveProperty("queueMs");
  });

  test("has no parse time if no action was performed", async () => {
    const outputIds = characterIds(switchCall).slice(0, -1);
    const { episode } = await play([{ outputIds, finish: { type: "length" } }]);
    expect(episode.turns[0]).not.toHaveProperty("parseMs");
  });

  test("shows a malformed call to the model and continues", async () => {
    const { episode } = await play([
      says("<tool_call>\n{bad}\n</tool_call>"),
      says("Sorry. Goodbye!"),
    ]);
    expect(episode.turns[0]!.steps).toEqual([
      {
        source: "unreadable_call",
        callId: "t0000c000",
        observation: "Error: the tool call is not valid JSON",
        result: "refused",
        isError: true,
      },
    ]);
    expect(episode).toMatchObject({ outcome: "completed", reward: 0 });
    expect(episode.counts).toMatchObject({ formatErrorCount: 1, toolCallCount: 0 });
  });

  test("records the calls that a first-call policy ignores, and does not show them", async () => {
    const { episode } = await play([says(`${switchCall}\n${switchCall}`), says("Goodbye!")], {
      toolUsePolicy: toolUsePolicies.first,
    });
    expect(episode.turns[0]!.steps).toMatchObject([
      { source: "switch", result: "acted", observation: "on" },
      { source: "switch", callId: "t0000c001", result: "ignored", observation: "" },
    ]);
    expect(episode.messages.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "assistant",
      "user",
    ]);
    expect(episode.counts).toMatchObject({ formatErrorCount: 0, toolCallCount: 1 });
  });

  test("counts a malformed first call even if an ignored correct call follows it", async () => {
    const { episode } = await play([says(`<tool_call>\n{bad}\n</tool_call>\n${switchCall}`)], {
      toolUsePolicy: toolUsePolicies.first,
      limits: { maxFormatErrors: 1 },
    });
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "format-errors" });
  });

  test("ends after the allowed number of malformed turns", async () => {
    const bad = says("<tool_call>\n{bad}\n</tool_call>");
    const { episode } = await play([bad, bad, bad], { limits: { maxFormatErrors: 3 } });
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "format-errors", reward: 0 });
  });

  test("ends after the allowed number of turns", async () => {
    const { episode } = await play([says(switchCall), says(switchCall)], {
      limits: { maxTurns: 2 },
    });
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "max-turns", reward: 0 });
    expect(episode.turns).toHaveLength(2);
  });

  test("never executes a call of a turn that was cut by length", async () => {
    const acted: Action[] = [];
    const environment = lamp((action) => {
      acted.push(action);
      return undefined;
    });
    const cut = {
      outputIds: characterIds(switchCall).slice(0, -1),
      finish: { type: "length" },
    } as const;
    const { episode } = await play([cut], { environment });
    expect(acted).toEqual([]);
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "length", reward: 0 });
    expect(episode.segments[0]!.tokenIds.at(-1)).not.toBe(characterStopId);
  });

  test("can close a turn that was cut by length, with a close that is not trained", async () => {
    const cut = { outputIds: [97, 98], finish: { type: "length" } } as const;
    const { episode } = await play([cut, says("Goodbye!")], {
      lines: ["Hi", "What?", { text: "Bye.", leaves: true }],
      limits: { onLength: "close-and-continue" },
    });
    const [segment] = episode.segments;
    const [first] = segment!.turns;
    expect(segment!.tokenIds.slice(first!.start, first!.end + 1)).toEqual([
      97,
      98,
      characterStopId,
    ]);
    expect(segment!.lossMask.slice(first!.start, first!.end + 1)).toEqual([1, 1, 0]);
    expect(episode.outcome).toBe("completed");
  });

  test("gives a turn only the tokens that are left", async () => {
    const { engine, episode } = await play([says("abc"), says("Goodbye!")], {
      lines: ["Hi", "Yes?", { text: "Bye.", leaves: true }],
      limits: { maxEpisodeTokens: 40, maxTokensPerTurn: 30 },
    });
    expect(engine.requests.map(({ maxNewTokens }) => maxNewTokens)).toEqual([30, 14]);
    expect(episode.outcome).toBe("completed");
    const full = await play([says("abcdefgh")], {
      lines: ["Hi", "Yes?"],
      limits: { maxEpisodeTokens: 20, maxTokensPerTurn: 30 },
    });
    expect(full.episode).toMatchObject({ outcome: "truncated", stopReason: "max-tokens" });
    const context = await play([], { limits: { maxContextTokens: 10 } });
    expect(context.episode).toMatchObject({ outcome: "truncated", stopReason: "context-full" });
  });

  test("counts the tokens of all segments if the history is rewritten", async () => {
    const plain = createCharacterRenderer();
    const rewriting = {
      ...plain,
      rerender: async ({ history, assistant, environment, tools }: TurnToContinue) =>
        await plain.prompt({ messages: [...history, assistant, ...environment], tools }),
    };
    const { engine, episode } = await play([says("abc"), says("x")], {
      lines: ["Hi", "Yes?", { text: "Bye.", leaves: true }],
      limits: { maxEpisodeTokens: 6, maxTokensPerTurn: 30 },
      renderer: rewriting,
    });
    expect(engine.requests.map(({ maxNewTokens }) => maxNewTokens)).toEqual([6, 2]);
    expect(episode.segments).toHaveLength(2);
    const full = await play([says("abc"), says("x")], {
      lines: ["Hi", "Yes?", "And?"],
      limits: { maxEpisodeTokens: 6, maxTokensPerTurn: 30 },
      renderer: rewriting,
    });
    expect(full.episode).toMatchObject({ outcome: "truncated", stopReason: "max-tokens" });
  });

  test("an engine failure gives a failed episode without a reward, with the recorded turns", async () => {
    const outage = new RolloutError("engine/unreachable", "Cannot reach it");
    const { episode } = await play([says(switchCall), outage]);
    expect(episode).toMatchObject({
      outcome: "failed",
      stopReason: "failure",
      failure: { party: "engine", code: "engine/unreachable", message: "Cannot reach it" },
    });
    expect(episode).not.toHaveProperty("reward");
    expect(episode.segments[0]!.turns).toHaveLength(1);
  });

  test("an engine failure reports the ids sampled for the turn", async () => {
    await using server = await startSglangTestServer({
      policy: createScriptedPolicy([]),
      faults: () => ({ kind: "reset" }),
    });
    const engine = createSglangEngine({ url: server.url, retry: { maxAttempts: 1 } });
    const { episode } = await play([], { engine });
    expect(episode).toMatchObject({
      outcome: "failed",
      failure: {
        code: "engine/unreachable",
        discarded: [
          {
            requestId: "lamp/test/0#0:1:0;",
            reason: expect.stringContaining(
              "the connection broke before the complete reply arrived",
            ),
          },
        ],
      },
    });
    await engine.close();
  });

  test("a user who does not answer fails the user, not the agent", async () => {
    const environment = lamp();
    const silent = {
      strategy: "silent",
      open: () => ({
        begin: async () => "Hi",
        reply: () => new Promise<string>(() => {}),
        usage: () => ({ callCount: 1, inputTokenCount: 0, outputTokenCount: 0 }),
      }),
    };
    const episode = await playEpisode(
      { task: lampTask, rolloutId: "r", groupId: "g", sampleIndex: 0, seed: 0 },
      {
        environment,
        user: silent,
        engine: preparedEngine([says("Hello?")]),
        renderer: createCharacterRenderer(),
        agent: createToolCallingAgent({
          parser: findToolCallParser("qwen25"),
          toolUsePolicy: toolUsePolicies.many,
        }),
        sampling: {},
        limits: { ...defaultLimits, userTimeoutMs: 5 },
        now: () => 0,
      },
      { signal: new AbortController().signal },
    );
    expect(episode).toMatchObject({
      outcome: "failed",
      failure: {
        party: "user",
        code: "user/timeout",
        message: "Cannot hear the user's reply in task lamp/test/0: no answer within 5 ms",
      },
    });
    expect(episode.turns).toHaveLength(1);
  });

  test("an error of a tool is the environment's failure, and bugs of this package pass", async () => {
    const throwing = lamp((action) => {
      if (action.type === "call") throw new TypeError("connection lost");
      return undefined;
    });
    const { episode } = await play([says(switchCall)], { environment: throwing });
    expect(episode.failure).toEqual({
      party: "environment",
      code: "environment/exception",
      message: "Cannot call tool switch in task lamp/test/0: connection lost",
    });
    const buggy = lamp(() => {
      assertInvariant(false, "ours");
      return undefined;
    });
    await expect(play([says("x")], { environment: buggy })).rejects.toThrow(InvariantError);
  });

  const once = new InvariantError("a lamp is on or off");
  const deep = (depth: number): never => {
    if (depth === 0) throw new InvariantError("a lamp is on or off");
    return deep(depth - 1);
  };

  test.each<[when: string, step: () => Promise<Step>]>([
    ["at once", () => deep(0)],
    // A stack shows ten places.
    ["far within its own code", () => deep(20)],
    ["that was made before", () => Promise.reject(once)],
    [
      "from a callback",
      () =>
        new Promise((_, reject) => {
          setImmediate(() => reject(new InvariantError("a lamp is on or off")));
        }),
    ],
  ])("a tool that throws a bug of its own fails the environment: %s", async (_, step) => {
    const throwing: Environment = {
      ...lamp(),
      async open(task, options) {
        const world = await lamp().open(task, options);
        world.step = step;
        return world;
      },
    };
    const { episode } = await play([says(switchCall)], { environment: throwing });
    expect(episode.failure).toEqual({
      party: "environment",
      code: "environment/exception",
      message: "Cannot call tool switch in task lamp/test/0: a lamp is on or off",
    });
  });

  test("an abort by the caller gives no episode", async () => {
    const controller = new AbortController();
    const playing = play(["hang"], { signal: controller.signal });
    controller.abort(new Error("stop now"));
    await expect(playing).rejects.toThrow("stop now");
  });

  test("same replies, same bytes", async () => {
    const replies = [says(switchCall), says("Goodbye!")];
    const [first, second] = [await play(replies), await play(replies)];
    expect(JSON.stringify(first.episode)).toBe(JSON.stringify(second.episode));
  });
});

import { describe, expect, test } from "vitest";
import { createChatToolAgent } from "../../agent/chat-tool-agent.ts";
import { ownTextActionPrompts } from "../../agent/own-text-action-prompts.ts";
import { createTextActionAgent } from "../../agent/text-action-agent.ts";
import { toolUsePolicies } from "../../agent/tool-use-policy.ts";
import type { ChatTurn, ChatTurnRequest } from "../../engine/chat/chat-turn.ts";
import type { Engine } from "../../engine/engine.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { createScriptedUser } from "../../user/scripted-user.ts";
import { checkStory } from "../check/check-story.ts";
import type { EpisodeSetup } from "../episode-setup.ts";
import { turnsIn, type Inputs } from "../inputs/input.ts";
import { lamp, lampTask } from "../lamp-episode.fixture.ts";
import { defaultLimits, type EpisodeLimits } from "../limits.ts";
import { playEpisode, type PlayEpisodeOptions } from "../play-episode.ts";

type Reply = Partial<ChatTurn> | Error | "hang";

/** An engine with prepared turns. It keeps the requests that it gets. */
function chatEngine(replies: readonly Reply[]): Engine & { readonly requests: ChatTurnRequest[] } {
  const requests: ChatTurnRequest[] = [];
  return {
    kind: "chat",
    requests,
    generate: () => Promise.reject(new Error("it gives no ids")),
    async complete(request, { signal } = {}) {
      requests.push(request);
      const reply = replies[requests.length - 1] ?? new Error("no reply is prepared");
      if (reply instanceof Error) throw reply;
      if (reply === "hang") {
        return await new Promise((_, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason as Error));
        });
      }
      return { content: "", toolCalls: [], finish: "stop", ...reply };
    },
    describe: async () => ({ kind: "chat" }),
    close: async () => {},
  };
}

const assignment = {
  task: lampTask,
  rolloutId: "lamp/test/0#0",
  groupId: "lamp/test/0",
  sampleIndex: 0,
  seed: 0,
};

async function play(
  replies: readonly Reply[],
  {
    limits,
    setup: parts,
    ...options
  }: Partial<PlayEpisodeOptions> & {
    limits?: Partial<EpisodeLimits>;
    setup?: Partial<EpisodeSetup>;
  } = {},
) {
  const engine = chatEngine(replies);
  const setup: EpisodeSetup = {
    environment: lamp(),
    user: createScriptedUser({ lines: ["Lamp on, please.", { text: "Bye.", leaves: true }] }),
    engine,
    agent: createChatToolAgent({ toolUsePolicy: toolUsePolicies.many }),
    sampling: { temperature: 0 },
    limits: { ...defaultLimits, ...limits },
    now: () => 1000,
    ...parts,
  };
  const inputs: Inputs[] = [];
  const episode = await playEpisode(assignment, setup, {
    signal: new AbortController().signal,
    onInputs: (more) => inputs.push(JSON.parse(JSON.stringify(more)) as Inputs),
    ...options,
  });
  const { segments, ...story } = episode;
  expect(segments).toEqual([]);
  expect(checkStory(JSON.parse(JSON.stringify(story))).found).toEqual([]);
  const recorded: Inputs = {
    inputs: inputs.flatMap((part) => part.inputs),
    times: inputs.flatMap((part) => part.times),
  };
  return { episode, engine, recorded };
}

const switchOn: Reply = {
  reasoning: "It is dark.",
  toolCalls: [{ id: "call_1", name: "switch", argumentsText: "{}", members: { sig: "x" } }],
  usage: { promptTokenCount: 10, cachedTokenCount: 4, sampledTokenCount: 5 },
  members: { reasoning_content: "It is dark." },
};
const done: Reply = {
  content: "It is on.",
  usage: { promptTokenCount: 20, sampledTokenCount: 3 },
};

test("an episode has messages, calls, counts and a reward, and no rows", async () => {
  const { episode, engine } = await play([switchOn, done]);
  expect(episode).toMatchObject({
    outcome: "completed",
    stopReason: "user-left",
    reward: 1,
    counts: { turnCount: 2, sampledTokenCount: 8, tokenCount: 0, toolCallCount: 1 },
  });
  expect(episode.messages).toEqual([
    { role: "system", content: "You switch the lamp." },
    { role: "user", content: "Lamp on, please." },
    {
      role: "assistant",
      content: "",
      reasoning: "It is dark.",
      toolCalls: [{ id: "call_1", name: "switch", argumentsText: "{}" }],
    },
    { role: "tool", content: "on", toolCallId: "call_1", name: "switch" },
    { role: "assistant", content: "It is on." },
    { role: "user", content: "Bye." },
  ]);
  const [first, second] = episode.turns;
  expect(first).toMatchObject({
    text: "switch {}",
    attempts: [{ status: "ok", name: "switch", span: [0, 9], tokenSpan: [0, 0] }],
    format: { formatOk: true },
    reasoning: "It is dark.",
    promptTokenCount: 10,
    cachedTokenCount: 4,
    sampledTokenCount: 5,
    attemptCounts: { ok: 1 },
  });
  expect(second).not.toHaveProperty("cachedTokenCount");
  const { messages, tools, ...about } = engine.requests[1]!;
  expect(messages[2]).toEqual({
    ...episode.messages[2],
    toolCalls: [{ id: "call_1", name: "switch", argumentsText: "{}", members: { sig: "x" } }],
    members: { reasoning_content: "It is dark." },
  });
  expect(tools.map(({ name }) => name)).toEqual(["switch"]);
  expect(about).toEqual({
    sampling: { temperature: 0 },
    maxNewTokens: 1024,
    requestId: "lamp/test/0#0:1:1",
    sessionId: "lamp/test/0#0",
  });
});

test("a turn without token counts says so", async () => {
  const { episode } = await play([{ content: "On." }]);
  expect(episode.turns[0]).toMatchObject({ isUnmetered: true, sampledTokenCount: 0 });
});

test("a malformed call is answered, and ends the episode when there are too many", async () => {
  const broken: Reply = { toolCalls: [{ id: "a", name: "switch", argumentsText: "{" }] };
  const { episode } = await play([broken, broken], { limits: { maxFormatErrors: 2 } });
  expect(episode).toMatchObject({
    outcome: "truncated",
    stopReason: "format-errors",
    counts: { formatErrorCount: 2, attemptCounts: { "invalid-json": 2 } },
  });
});

test("an agent without tools reads the text, and keeps the engine's reasoning", async () => {
  const agent = createTextActionAgent({
    strategy: "act",
    prompt: ownTextActionPrompts.act,
    invalidAction: "say",
  });
  const { episode, engine } = await play([{ content: "Hello", reasoning: "hm" }], {
    setup: { agent },
  });
  expect(engine.requests[0]?.tools).toEqual([]);
  expect(episode.turns[0]).toMatchObject({ text: "Hello", reasoning: "hm" });
});

describe("the end:", () => {
  test.each<[string, readonly Reply[], Partial<EpisodeLimits>]>([
    ["length", [{ content: "It is", finish: "length" }], {}],
    ["max-turns", [switchOn], { maxTurns: 1 }],
    ["context-full", [switchOn], { maxContextTokens: 15 }],
    ["max-tokens", [switchOn], { maxEpisodeTokens: 5 }],
    ["context-full", [new RolloutError("engine/prompt-too-long", "Too long")], {}],
  ])("%s", async (stopReason, replies, limits) => {
    const { episode } = await play(replies, { limits });
    expect(episode).toMatchObject({ outcome: "truncated", stopReason, reward: 0 });
  });

  test("a turn has no more tokens than the context has left", async () => {
    const { engine } = await play([switchOn, done], { limits: { maxContextTokens: 100 } });
    expect(engine.requests.map(({ maxNewTokens }) => maxNewTokens)).toEqual([100, 85]);
  });

  test("an outage fails the episode", async () => {
    const outage = new RolloutError("engine/overloaded", "Busy", { retryable: true });
    const { episode } = await play([switchOn, outage]);
    expect(episode).toMatchObject({
      outcome: "failed",
      failure: { code: "engine/overloaded", message: "Busy" },
      counts: { turnCount: 1 },
    });
    expect(episode).not.toHaveProperty("reward");
  });

  test.each([
    [{ content: 7 }, "content: Invalid input: expected string, received number"],
    [{ usage: { promptTokenCount: -1, sampledTokenCount: 0 } }, "usage.promptTokenCount"],
    [{ toolCalls: [{ argumentsText: {} }] }, "toolCalls.0.argumentsText"],
  ])("an invalid turn %j is the engine's failure", async (reply, problem) => {
    const { episode } = await play([reply as never]);
    expect(episode.failure).toMatchObject({ code: "engine/bad-reply" });
    expect(episode.failure?.message).toContain(problem);
  });

  test.each(["engine/unauthorized", "engine/not-found", "engine/budget"] as const)(
    "%s is no episode, and ends the run",
    async (code) => {
      await expect(play([new RolloutError(code, "Refused")])).rejects.toThrow(
        new UsageError("Refused"),
      );
    },
  );

  test("an interruption waits for the turn for the grace period only", async () => {
    const interrupt = new AbortController();
    const engine = chatEngine(["hang"]);
    const stopping: Engine = {
      ...engine,
      complete: async (...call) => {
        interrupt.abort();
        return await engine.complete!(...call);
      },
    };
    const { episode, recorded } = await play([], {
      setup: { engine: stopping },
      limits: { graceTimeoutMs: 1 },
      interrupt: interrupt.signal,
    });
    expect(episode).toMatchObject({ outcome: "aborted", stopReason: "interrupted", turns: [] });
    expect(turnsIn(recorded)).toBe(0);
  });
});

describe("a recording", () => {
  test("is played again without an engine, to the same episode", async () => {
    const { episode, recorded } = await play([switchOn, done]);
    expect(turnsIn(recorded)).toBe(2);
    const again = await play([], { past: recorded, atEnd: "replay" });
    expect(again.episode).toEqual(episode);
    expect(again.engine.requests).toEqual([]);
  });

  test("is continued after its last turn, which is not requested again", async () => {
    const setup = { environment: { ...lamp(), repeatable: true } };
    const { episode, recorded } = await play([switchOn, done], { setup });
    const end = recorded.inputs.findIndex(
      (input) => input.type === "answer" && input.what === "step switch",
    );
    const past = { inputs: recorded.inputs.slice(0, end), times: recorded.times.slice(0, 4) };
    expect(turnsIn(past)).toBe(1);
    const resumed = await play([done], { past, setup });
    expect(resumed.engine.requests).toHaveLength(1);
    expect(resumed.episode).toEqual(episode);
  });

  test("with another conversation is no recording of this episode", async () => {
    const { recorded } = await play([switchOn, done]);
    const agent = createChatToolAgent({ toolUsePolicy: toolUsePolicies.one });
    await expect(play([], { past: recorded, atEnd: "replay", setup: { agent } })).rejects.toThrow(
      /reaches turn \w+ where it reached turn \w+/,
    );
  });

  test("cannot be forked", async () => {
    const { recorded } = await play([switchOn, done]);
    await expect(play([], { past: recorded, forkAt: 1 })).rejects.toThrow(
      /Cannot fork an episode with the engine chat/,
    );
  });
});

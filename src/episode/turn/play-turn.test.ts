import { describe, expect, test } from "vitest";
import type { Agent, Observed } from "../../agent/agent.ts";
import { createToolCallingAgent } from "../../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../agent/tool-use-policy.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Environment } from "../../environment/environment.ts";
import { RolloutError } from "../../errors.ts";
import { createClock } from "../../async/clock.ts";
import type { Message } from "../../message.ts";
import { findToolCallParser } from "../../../packages/tool-parsers/src/registry.ts";
import type { Renderer } from "../../renderer/renderer.ts";
import { createCharacterRenderer } from "../../testing/character-renderer.ts";
import { createDeferred } from "../../testing/deferred.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { createScriptedUser } from "../../user/scripted-user.ts";
import type { User } from "../../user/user.ts";
import { lamp, play, preparedEngine, says, switchCall } from "../lamp-episode.fixture.ts";

const qwenAgent = createToolCallingAgent({
  parser: findToolCallParser("qwen25"),
  toolUsePolicy: toolUsePolicies.many,
});

/** An agent that has this to show where the user has left. */
function agentThatEnds(last: () => readonly Message[] | Promise<readonly Message[]>): Agent {
  const observe = (observed: readonly Observed[]): readonly Message[] =>
    observed[0]?.text === "Bye." ? (last() as readonly Message[]) : qwenAgent.observe(observed);
  return { ...qwenAgent, observe };
}

test("two malformed calls in a turn that may make one are a format error", async () => {
  const bad = '<tool_call>\n{"name": "switch", "arguments": {]}\n</tool_call>';
  const turn = says(`${bad}\n${bad}`);
  const { episode } = await play([turn, turn], {
    toolUsePolicy: toolUsePolicies.one,
    limits: { maxFormatErrors: 2 },
  });
  expect(episode).toMatchObject({ outcome: "truncated", stopReason: "format-errors" });
  expect(episode.counts).toMatchObject({ formatErrorCount: 2, turnCount: 2 });
});

test("a turn with the stop id as its last allowed id is closed, with any finish of the engine", async () => {
  const turn = says(switchCall);
  const tokenCount = turn.outputIds!.length;
  const finish = { type: "length" } as const;
  const pieces = [{ requestId: "r", tokenCount, policyVersion: "1", finish: "length" as const }];
  const { episode } = await play([{ ...turn, finish, pieces }, says("Goodbye!")], {
    limits: { maxTokensPerTurn: tokenCount, onLength: "end" },
  });
  expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
  expect(episode.turns[0]).toMatchObject({ finish: "stop", pieces: [{ finish: "stop" }] });
});

describe("a tool that asks the user", () => {
  /** A tool whose user answers after `userMs`; the tool itself takes `toolMs`. */
  function asking({
    userMs,
    toolMs,
    patienceMs,
    tells = false,
    askCount = 1,
    sampleMs,
  }: {
    readonly userMs: number;
    readonly toolMs: number;
    /** Time after which the world stops waiting; silently unless `tells`. */
    readonly patienceMs?: number;
    readonly tells?: boolean;
    /** Default 1. */
    readonly askCount?: number;
    /** Duration of the next turn, in which the user is asked again. */
    readonly sampleMs?: number;
  }) {
    const hand = createManualClock();
    let nudge = (): void => {};
    const script = createScriptedUser({
      lines: ["Lamp on, please.", { text: "Bye.", leaves: true }],
    });
    const user: User = {
      ...script,
      open: (...call) => {
        const session = script.open(...call);
        return {
          ...session,
          reply: async (text, options) => {
            if (text !== "Sure?") return await session.reply(text, options);
            await hand.sleep(userMs);
            return "Yes.";
          },
        };
      },
    };
    const inner = lamp();
    const environment: Environment = {
      ...inner,
      async open(task, options) {
        const world = await inner.open(task, options);
        return {
          ...world,
          step: async (action, { signal }) => {
            if (action.type === "call") {
              const ask = (): void => void options.user.reply("Sure?", { signal }).catch(() => {});
              if (sampleMs !== undefined) nudge = ask;
              for (let count = 0; count < askCount; count++) {
                const own = new AbortController();
                const either = AbortSignal.any([signal, own.signal]);
                const answer = options.user.reply("Sure?", { signal: either });
                answer.catch(() => {});
                const patience = patienceMs === undefined ? [] : [hand.sleep(patienceMs)];
                await Promise.race([answer, ...patience]);
                if (tells) own.abort();
              }
              if (toolMs > 0) await hand.sleep(toolMs);
            }
            return await world.step(action, { signal });
          },
          score: async (given) => await world.score(given),
          [Symbol.asyncDispose]: async () => await world[Symbol.asyncDispose](),
        };
      },
    };
    const limits = { toolTimeoutMs: 200, userTimeoutMs: 2000 };
    const clock = createClock(hand);
    const ready = preparedEngine([says(switchCall), says("Goodbye!")]);
    const engine: Engine = {
      ...ready,
      async generate(...call) {
        nudge();
        if (sampleMs !== undefined && ready.requests.length === 1) await hand.sleep(sampleMs);
        return await ready.generate(...call);
      },
    };
    const about = { environment, user, engine, limits, clock };
    return { hand, playing: play([], about) };
  }

  test("has its own time limit, and so has the user", async () => {
    const { hand, playing } = asking({ userMs: 401, toolMs: 101 });
    await hand.untilSleeping(401);
    await hand.advance(401);
    await hand.untilSleeping(101);
    await hand.advance(101);
    expect((await playing).episode).toMatchObject({ outcome: "completed", reward: 1 });
  });

  test("is not to blame if the user's time is over", async () => {
    const { hand, playing } = asking({ userMs: 3001, toolMs: 101 });
    await hand.untilSleeping(3001);
    await hand.advance(2000);
    const { failure } = (await playing).episode;
    expect(failure?.code).toBe("user/timeout");
    expect(failure?.message).toContain("no answer within 2000 ms");
  });

  test("that stops waiting silently still waits for the user's answer", async () => {
    const { hand, playing } = asking({ userMs: 9001, toolMs: 9002, patienceMs: 100 });
    await hand.untilSleeping(9001);
    await hand.advance(100);
    await hand.untilSleeping(9002);
    await hand.advance(1900);
    expect((await playing).episode.failure?.code).toBe("user/timeout");
  });

  test("that ends in time without waiting for the user continues", async () => {
    const { hand, playing } = asking({ userMs: 9001, toolMs: 501, patienceMs: 100 });
    await hand.untilSleeping(9001);
    await hand.advance(100);
    await hand.untilSleeping(501);
    await hand.advance(501);
    expect((await playing).episode).toMatchObject({ outcome: "completed", reward: 1 });
  });

  test("repeatedly has the time of one answer in total", async () => {
    const { hand, playing } = asking({ userMs: 401, toolMs: 101, askCount: 1000 });
    for (let count = 0; count < 4; count++) {
      await hand.untilSleeping(401);
      await hand.advance(401);
    }
    await hand.untilSleeping(401);
    await hand.advance(2000 - 4 * 401);
    expect((await playing).episode.failure?.code).toBe("user/timeout");
  });

  test("that cancels the request and hangs is to blame itself", async () => {
    const { hand, playing } = asking({ userMs: 9001, toolMs: 9002, patienceMs: 100, tells: true });
    await hand.untilSleeping(9001);
    await hand.advance(100);
    await hand.untilSleeping(9002);
    await hand.advance(200);
    const { failure } = (await playing).episode;
    expect(failure?.code).toBe("environment/timeout");
    expect(failure?.message).toContain("no answer within 200 ms");
  });

  test("after its own answer does not use the engine's time", async () => {
    const { hand, playing } = asking({ userMs: 9001, toolMs: 0, askCount: 0, sampleMs: 3001 });
    await hand.untilSleeping(9001);
    await hand.untilSleeping(3001);
    await hand.advance(3001);
    expect((await playing).episode).toMatchObject({ outcome: "completed", reward: 1 });
  });

  test("is to blame if its own time is over", async () => {
    const { hand, playing } = asking({ userMs: 401, toolMs: 301 });
    await hand.untilSleeping(401);
    await hand.advance(401);
    await hand.untilSleeping(301);
    await hand.advance(200);
    const { failure } = (await playing).episode;
    expect(failure?.code).toBe("environment/timeout");
    expect(failure?.message).toContain("no answer within 200 ms");
  });
});

describe("the last answer of a world, which is in no prompt", () => {
  test("an agent that cannot show it keeps its score", async () => {
    const agent = agentThatEnds(() => {
      throw new TypeError("what is a farewell?");
    });
    const { episode, troubles } = await play([says(switchCall), says("Goodbye!")], { agent });
    expect(episode).toMatchObject({ outcome: "completed", stopReason: "user-left", reward: 1 });
    expect(episode.messages.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
      "assistant",
    ]);
    expect(troubles.map(({ code, message }) => [code, message])).toEqual([
      [
        "agent/exception",
        "Cannot show observations in task lamp/test/0 as agent tool-calling: what is a farewell?",
      ],
    ]);
  });

  test("an agent that never shows it keeps its score, and the score call has a signal of its own", async () => {
    const hand = createManualClock();
    const { promise: shown, resolve } = createDeferred();
    const agent = agentThatEnds(() => {
      resolve();
      return new Promise<never>(() => {});
    });
    const inner = lamp();
    const asked: AbortSignal[] = [];
    const environment: Environment = {
      ...inner,
      async open(...call) {
        const world = await inner.open(...call);
        return {
          ...world,
          step: async (action, options) => {
            asked.push(options.signal);
            return await world.step(action, options);
          },
          score: async (options) => {
            asked.push(options.signal);
            return await world.score(options);
          },
          [Symbol.asyncDispose]: async () => await world[Symbol.asyncDispose](),
        };
      },
    };
    const playing = play([says(switchCall), says("Goodbye!")], {
      agent,
      environment,
      clock: createClock(hand),
      limits: { toolTimeoutMs: 777 },
    });
    await shown;
    await hand.advance(777);
    const { episode, troubles } = await playing;
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
    expect(troubles).toMatchObject([{ code: "agent/timeout" }]);
    expect(asked.map(({ aborted }) => aborted)).toEqual([true, true, false]);
  });
});

describe("an answer that is too long to be encoded", () => {
  const lengthOf = (message: object): number =>
    "content" in message && typeof message.content === "string" ? message.content.length : 0;

  /** A renderer that refuses a delta with more than a number of characters. */
  function shortRenderer(most: number): Renderer {
    const renderer = createCharacterRenderer();
    return {
      ...renderer,
      delta: async (change) => {
        const length = change.environment.reduce((sum, message) => sum + lengthOf(message), 0);
        if (length > most) {
          const message = `Cannot encode a text of ${length} characters: expected at most ${most}`;
          throw new RolloutError("internal/text-too-long", message);
        }
        return await renderer.delta(change);
      },
    };
  }

  test("fills the context if its length is known, and the episode is scored", async () => {
    const limits = { maxContextTokens: 10_000 };
    const { episode } = await play([says(switchCall)], { renderer: shortRenderer(1), limits });
    expect(episode).toMatchObject({
      outcome: "truncated",
      stopReason: "context-full",
      reward: 0,
    });
    expect(episode.messages.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
    ]);
  });

  test("is a failure of its party if no context length is known", async () => {
    const renderer = shortRenderer(1);
    const ofTool = await play([says(switchCall)], { renderer });
    expect(ofTool.episode).toMatchObject({
      outcome: "failed",
      failure: {
        code: "environment/bad-step",
        message:
          "Cannot continue task lamp/test/0 of lamp: " +
          "Cannot encode a text of 2 characters: expected at most 1; " +
          "a limit of the context (`maxContextTokens`) ends such episodes with their score",
      },
    });
    const ofUser = await play([says("Which lamp?")], { renderer, lines: ["On, please.", "That."] });
    expect(ofUser.episode).toMatchObject({ outcome: "failed", failure: { code: "user/bad-line" } });
  });
});

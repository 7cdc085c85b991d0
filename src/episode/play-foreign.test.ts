import { describe, expect, test } from "vitest";
import { createToolCallingAgent } from "../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../agent/tool-use-policy.ts";
import type { ColumnSpecs } from "../columns/column-specs.ts";
import type { RolloutError } from "../errors.ts";
import { createClock } from "../async/clock.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { createCharacterRenderer } from "../testing/character-renderer.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { hashIds } from "../trajectory/rolling-hash.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import type { Episode } from "./episode.ts";
import type { EpisodeSetup, PlayAttempt } from "./episode-setup.ts";
import { lamp, lampTask, preparedEngine, says } from "./lamp-episode.fixture.ts";
import { defaultLimits } from "./limits.ts";
import { playEpisode } from "./play-episode.ts";
import { playForeign } from "./play-foreign.ts";
import { leaveMs, longestPlayMs } from "./play-within-time.ts";

const assignment = {
  task: lampTask,
  rolloutId: "lamp/test/0#0",
  groupId: "lamp/test/0",
  sampleIndex: 0,
  seed: 0,
};

/** Plays an attempt by a custom player, in a time that the test advances. */
function start(play: PlayAttempt, own: Partial<EpisodeSetup> = {}) {
  const time = createManualClock();
  const troubles: RolloutError[] = [];
  const [stop, interrupt] = [new AbortController(), new AbortController()];
  const setup: EpisodeSetup = {
    environment: lamp(),
    engine: preparedEngine([says("Goodbye!")]),
    user: createScriptedUser({ lines: ["Lamp on, please.", { text: "Bye.", leaves: true }] }),
    renderer: createCharacterRenderer(),
    agent: createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      toolUsePolicy: toolUsePolicies.many,
    }),
    sampling: {},
    limits: defaultLimits,
    now: () => 1000,
    clock: createClock(time),
    onTrouble: (trouble) => troubles.push(trouble),
    ...own,
  };
  const options = { signal: stop.signal, interrupt: interrupt.signal };
  const played = playForeign(play, assignment, setup, options);
  return { played, time, troubles, stop, interrupt };
}

test("a player that never answers fails the attempt at the longest play time", async () => {
  let received: AbortSignal | undefined;
  const { played, time, troubles } = start(
    async (_assignment, _setup, { signal }) => await new Promise(() => void (received = signal)),
  );
  const ms = longestPlayMs(defaultLimits);
  expect(ms).toBe((30 + 25) * 60_000 + 60_000 + 10_000 + 3 * (60_000 + 120_000));
  await time.advance(ms - 1);
  expect(received!.aborted).toBe(false);
  await time.advance(1);
  expect(await played).toMatchObject({
    outcome: "failed",
    failure: {
      party: "agent",
      code: "agent/timeout",
      message:
        `Cannot play lamp/test/0#0 as agent tool-calling: no answer within ${ms} ms, expected an episode ` +
        "(a forgotten resolve in its play(), or one that heeds no signal?)",
    },
  });
  expect(received!.aborted).toBe(true);
  expect(troubles.map(({ code, retryable }) => [code, retryable])).toEqual([
    ["agent/timeout", true],
  ]);
});

test("pauses of the policy do not count as the player's time", async () => {
  let goOn = (): void => {};
  const engine = preparedEngine([says("Goodbye!")]);
  const { played, time } = start(
    async (...asked) => {
      await asked[1].engine.generate({ requestId: "r;" } as never, {});
      return await new Promise(() => {});
    },
    {
      engine: {
        ...engine,
        async generate(request, options) {
          options?.onHeld?.(true);
          await new Promise<void>((resolve) => (goOn = resolve));
          options?.onHeld?.(false);
          return await engine.generate({ ...request, promptIds: [] }, options);
        },
      },
    },
  );
  const ms = longestPlayMs(defaultLimits);
  let isOver = false;
  void played.then(() => (isOver = true));
  await time.advance(2 * ms);
  expect(isOver).toBe(false);
  goOn();
  await time.advance(0);
  await time.advance(ms);
  expect(await played).toMatchObject({ failure: { code: "agent/timeout" } });
});

test("a player that ignores an interruption is waited for until the leave time is over", async () => {
  let received: AbortSignal | undefined;
  const { played, time, troubles, interrupt } = start(
    async (_assignment, _setup, { signal }) => await new Promise(() => void (received = signal)),
  );
  await time.advance(1000);
  interrupt.abort();
  await time.advance(leaveMs(defaultLimits));
  expect(await played).toMatchObject({
    outcome: "aborted",
    stopReason: "interrupted",
    turns: [],
    segments: [],
  });
  expect(received!.aborted).toBe(true);
  expect(troubles).toMatchObject([{ code: "agent/timeout" }]);
  expect(troubles[0]!.message).toContain("no answer within 550000 ms of the interruption");
});

test("a player that handles an interruption keeps its episode", async () => {
  const { played, interrupt } = start(async (...asked) => {
    await Promise.resolve();
    interrupt.abort();
    return await playEpisode(...asked);
  });
  expect(await played).toMatchObject({ outcome: "aborted", stopReason: "interrupted" });
});

test("a player may reuse the lists of its episode", async () => {
  let kept: Episode | undefined;
  const { played } = start(async (...asked) => (kept = await playEpisode(...asked)));
  const episode = await played;
  const before = structuredClone(episode);
  const [segment] = kept!.segments;
  for (const name of ["tokenIds", "lossMask", "logprobs"] as const) {
    (segment![name] as number[]).fill(0);
  }
  (segment!.policyVersions as string[]).fill("2");
  (segment!.turns as unknown[]).pop();
  (kept!.segments as unknown[]).pop();
  Object.assign(kept!.turns[0]!, { text: "another" });
  Object.assign(kept!.messages[0]!, { content: 1n });
  Object.assign(kept!, { reward: 7 });
  expect(episode.segments).toHaveLength(1);
  expect(episode).toEqual(before);
});

describe("an episode is refused", () => {
  interface Lists {
    readonly tokenIds: number[];
    readonly lossMask: number[];
    readonly logprobs: number[];
    readonly policyVersions: string[];
    turns: Record<string, unknown>[];
  }

  test.each<[what: string, change: (segment: Lists, start: number) => void, why: string]>([
    [
      "whose prompt is in the loss",
      ({ lossMask, logprobs, policyVersions }) => {
        lossMask.fill(1);
        logprobs.fill(-0.5);
        policyVersions.fill("1");
      },
      "segments[0] breaks the rule mask: lossMask[0] is 1, expected 0 by the turns",
    ],
    [
      "with an id that the engine did not sample",
      ({ tokenIds }, start) => void (tokenIds[start] = 7),
      "segments[0] breaks the rule trained-is-sampled: the ids of turns[0] are not the ids that the engine returned",
    ],
    [
      "with an id beyond the vocabulary",
      (segment, start) => {
        segment.tokenIds[start] = 5_000_000;
        const outputHash = hashIds(segment.tokenIds.slice(start));
        segment.turns = [{ ...segment.turns[0]!, outputHash }];
      },
      "segments[0] breaks the rule vocabulary: tokenIds[63] is 5000000, and the vocabulary has 1114114 ids",
    ],
    [
      "whose turns lie elsewhere",
      (segment) => {
        const [turn] = segment.turns;
        segment.turns = [{ ...turn, start: (turn!["start"] as number) + 1 }];
      },
      "segments[0] breaks the rule turns: the first turn begins at 64, expected the prompt's end 63",
    ],
    [
      "that lacks a logprob",
      ({ logprobs }, start) => void Reflect.deleteProperty(logprobs, start),
      "segments[0].logprobs[63] is missing",
    ],
    [
      "that lacks a turn of a row",
      ({ turns }) => void Reflect.deleteProperty(turns, 0),
      "segments[0].turns",
    ],
  ])("%s", async (_, change, why) => {
    const { played } = start(async (...asked) => {
      const episode = structuredClone(await playEpisode(...asked));
      const [segment] = episode.segments;
      change(segment as unknown as Lists, segment!.promptLength);
      return episode;
    });
    expect(await played).toMatchObject({
      outcome: "failed",
      failure: {
        code: "agent/exception",
        message:
          "Cannot play lamp/test/0#0 as agent tool-calling: it returned a value that is not an episode of this rollout " +
          `(${why}), expected one`,
      },
    });
  });

  test.each([
    ["turns", "turns[0] is not an object"],
    ["messages", "messages[0] has no known role, or no text"],
  ])("whose %s have a hole", async (name, why) => {
    const { played } = start(async (...asked) => {
      const episode = await playEpisode(...asked);
      return { ...episode, [name]: new Array(1) };
    });
    const { failure } = await played;
    expect(failure?.message).toContain(`(${why}), expected one`);
  });

  const part = { from: 0, rows: 71, policyVersion: "1", size: 71, hash: "0".repeat(32) };
  test.each<[what: string, specs: ColumnSpecs | undefined, found: object, why: string]>([
    [
      "without the side columns of its run",
      { routedExperts: { layerCount: 1, perToken: 1, expertCount: 4 } },
      {},
      "segments[0] breaks the rule columns: the row has no columns, and its run has routedExperts",
    ],
    [
      "with side columns that its run does not have",
      undefined,
      { columns: { routedExperts: [part] } },
      'segments[0] breaks the rule columns: columns has "routedExperts", which its run does not have',
    ],
  ])("%s", async (_, columns, found, why) => {
    const { played } = start(async (asked, { columns: _columns, ...setup }, options) => {
      const episode = await playEpisode(asked, setup, options);
      return { ...episode, segments: [{ ...episode.segments[0]!, ...found }] };
    }, columns && { columns });
    const { failure } = await played;
    expect(failure?.message).toContain(`(${why}), expected one`);
  });

  test.each<[what: string, change: (episode: Episode) => object, why: string]>([
    [
      "with the same turn in two rows",
      ({ segments }) => ({ segments: [...segments, ...segments] }),
      "segments[1] breaks the rule trained-once: turn 0 of lamp/test/0#0 is trained twice",
    ],
    ["without rows", () => ({ segments: [] }), "its segments have 0 turns, expected 1"],
    [
      "without turns",
      ({ counts }) => ({ turns: [], counts: { ...counts, turnCount: 0, sampledTokenCount: 0 } }),
      "segments[0] breaks the rule episode-turns: turns[0] is turn 0, and the episode has 0",
    ],
    [
      "whose turn ended otherwise in its row",
      ({ turns }) => ({ turns: [{ ...turns[0], finish: "length" }] }),
      'segments[0] breaks the rule episode-turns: turns[0]: the finish is "stop", and "length" in the episode',
    ],
    [
      "with more turns than it has",
      ({ counts }) => ({ counts: { ...counts, turnCount: 5 } }),
      "counts.turnCount is 5, expected 1 by the turns",
    ],
    [
      "with more ids than it has",
      ({ counts }) => ({ counts: { ...counts, tokenCount: 5 } }),
      "its segments have 72 ids, expected 5",
    ],
    [
      "whose attempt lies beyond its text",
      ({ turns }) => ({
        turns: [{ ...turns[0], attempts: [{ status: "ok", span: [0, 99], tokenSpan: [0, 1] }] }],
      }),
      "turns[0].attempts[0] is [0,99] of 8 characters and [0,1] of 9 ids",
    ],
    [
      "with a message of no known failure",
      ({ messages }) => ({ messages: [...messages, { content: "Hello" }] }),
      "messages[4] has no known role, or no text",
    ],
    ["whose tree lacks its turn", () => ({ tree: [] }), "turn 0 is not in the tree"],
    [
      "whose troubles are a number",
      () => ({ troubles: 5 }),
      "troubles is 5, expected a list of failures, or no such field",
    ],
    [
      "whose trouble has no party",
      () => ({ troubles: [{ code: "slow", message: "late" }] }),
      'troubles[0]: the failure is of party undefined with code "slow", expected a known party and a code of its own',
    ],
    [
      "that is written otherwise than it is",
      ({ messages }) => ({ messages: [{ ...messages[0], toJSON: () => ({ role: "system" }) }] }),
      "messages[0] has no known role, or no text",
    ],
    ["that is written as nothing", () => ({ toJSON: () => null }), "it is not an object"],
  ])("%s", async (_, change, why) => {
    const { played } = start(async (...asked) => {
      const episode = await playEpisode(...asked);
      return { ...episode, ...change(episode) };
    });
    expect((await played).failure).toEqual({
      party: "agent",
      code: "agent/exception",
      message:
        "Cannot play lamp/test/0#0 as agent tool-calling: it returned a value that is not an episode of this rollout " +
        `(${why}), expected one`,
    });
  });

  test("but not for troubles", async () => {
    const troubles = [{ party: "user", code: "user/timeout", message: "late" }] as const;
    const { played } = start(async (...asked) => ({ ...(await playEpisode(...asked)), troubles }));
    expect(await played).toMatchObject({ outcome: "completed", reward: 0, troubles });
  });
});

test("an abort does not wait for the player", async () => {
  const { played, stop } = start(async () => await new Promise(() => {}));
  stop.abort(new Error("stopped"));
  await expect(played).rejects.toThrow("stopped");
});

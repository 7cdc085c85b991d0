import { setImmediate } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { createToolCallingAgent } from "../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../agent/tool-use-policy.ts";
import { assertRequest } from "../engine/check-request.ts";
import type { Engine, GenerateRequest } from "../engine/engine.ts";
import { emptyGeneration } from "../engine/empty-generation.ts";
import { RolloutError } from "../errors.ts";
import { createClock } from "../async/clock.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import { characterIds, createCharacterRenderer } from "../testing/character-renderer.ts";
import { PolicyGate } from "../run/policy/policy-gate.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import type { EpisodeSetup } from "./episode-setup.ts";
import type { Inputs } from "./inputs/input.ts";
import { RecordingEnd } from "./inputs/playback-stop.ts";
import {
  lamp,
  lampTask,
  preparedEngine,
  says,
  switchCall,
  type Reply,
} from "./lamp-episode.fixture.ts";
import { defaultLimits, type EpisodeLimits } from "./limits.ts";
import { playEpisode, type PlayEpisodeOptions } from "./play-episode.ts";

/** Plays an episode with the lamp. Default: one turn. */
async function play(
  { limits, ...own }: Partial<Omit<EpisodeSetup, "limits">> & { limits?: Partial<EpisodeLimits> },
  options: Partial<PlayEpisodeOptions> = {},
) {
  const troubles: RolloutError[] = [];
  const batches: Inputs[] = [];
  const setup: EpisodeSetup = {
    environment: { ...lamp(), repeatable: true },
    engine: preparedEngine([]),
    user: createScriptedUser({ lines: ["Lamp on, please.", "And now?"] }),
    renderer: createCharacterRenderer(),
    agent: createToolCallingAgent({
      parser: findToolCallParser("qwen25"),
      toolUsePolicy: toolUsePolicies.many,
    }),
    sampling: {},
    now: () => 1000,
    onTrouble: (trouble) => troubles.push(trouble),
    ...own,
    limits: { ...defaultLimits, maxTurns: 1, ...limits },
  };
  const episode = await playEpisode(
    {
      task: lampTask,
      rolloutId: "lamp/test/0#0",
      groupId: "lamp/test/0",
      sampleIndex: 0,
      seed: 0,
      start: options.past === undefined ? 1 : 2,
    },
    setup,
    { signal: new AbortController().signal, onInputs: (more) => batches.push(more), ...options },
  );
  const recorded: Inputs = {
    inputs: batches.flatMap(({ inputs }) => inputs),
    times: batches.flatMap(({ times }) => times),
  };
  return { episode, recorded, troubles };
}

/** An engine that is interrupted while it is asked first, and has this to show. */
function interruptedEngine(part: Reply) {
  const interrupt = new AbortController();
  const prepared = preparedEngine([part]);
  const engine: Engine = {
    ...prepared,
    async generate(...call) {
      interrupt.abort();
      return await prepared.generate(...call);
    },
  };
  return { engine, options: { interrupt: interrupt.signal }, requests: prepared.requests };
}

/** The beginning of a turn. */
function cut(text: string): Reply {
  const outputIds = characterIds(text).slice(0, -1);
  const piece = { requestId: "r", tokenCount: outputIds.length, policyVersion: "1" } as const;
  return { outputIds, finish: { type: "length" }, pieces: [{ ...piece, finish: "abort" }] };
}

function joined(...parts: readonly Inputs[]): Inputs {
  return {
    inputs: parts.flatMap(({ inputs }) => inputs),
    times: parts.flatMap(({ times }) => times),
  };
}

test("a turn that continues after an interruption is sampled with another seed", async () => {
  const first = interruptedEngine(cut("Let me"));
  const sampling = { seed: 5, temperature: 0.7 };
  const { recorded } = await play({ engine: first.engine, sampling }, first.options);
  const second = preparedEngine([says(" see.")]);
  const { episode } = await play({ engine: second, sampling }, { past: recorded });
  expect(episode.turns.map(({ text }) => text)).toEqual(["Let me see."]);
  const asked: readonly GenerateRequest[] = [...first.requests, ...second.requests];
  expect(asked.map((request) => request.sampling)).toEqual([
    sampling,
    { ...sampling, seed: (5 + 6 * 1_327_217_885) % 2 ** 31 },
  ]);
});

test("a turn that continues and then fails reports its discarded ids, also in a replay", async () => {
  const first = interruptedEngine(cut("Let me"));
  const left = await play({ engine: first.engine }, first.options);
  const discarded = [{ requestId: "r2", reason: "the server is gone", tokenCount: 2 }];
  const engine: Engine = {
    ...preparedEngine([]),
    generate: () => Promise.reject(new RolloutError("engine/unreachable", "gone", { discarded })),
  };
  const { episode, recorded } = await play({ engine }, { past: left.recorded });
  expect(episode).toMatchObject({ outcome: "failed", turns: [] });
  expect(episode.failure).toMatchObject({
    code: "engine/unreachable",
    discarded: [
      { requestId: "r", reason: "the turn failed later", tokenCount: 6 },
      { requestId: "r2", reason: "the server is gone", tokenCount: 2 },
    ],
  });
  const past = joined(left.recorded, recorded);
  const played = await play({}, { past, atEnd: "replay" });
  expect(played.episode.failure).toEqual(episode.failure);
});

describe("an interrupted turn with a constraint on its complete output", () => {
  const sampling = { seed: 5, extra: { regex: "[a-z]+" } };

  test("is sampled again by the next start, from its beginning", async () => {
    const first = interruptedEngine(cut("Let me"));
    const left = await play({ engine: first.engine, sampling }, first.options);
    expect(left.episode).toMatchObject({
      outcome: "aborted",
      stopReason: "interrupted",
      turns: [],
    });
    const second = preparedEngine([says("I see.")]);
    const { episode, recorded } = await play({ engine: second, sampling }, { past: left.recorded });
    expect(episode.turns.map(({ text }) => text)).toEqual(["I see."]);
    expect(episode.turns[0]!.discarded).toEqual([
      {
        requestId: "r",
        reason: "it was interrupted, and sampling.extra.regex applies to the complete turn",
        tokenCount: 6,
      },
    ]);
    const [asked, again] = [first.requests[0]!, second.requests[0]!];
    expect(again).toEqual({ ...asked, requestId: "lamp/test/0#0:1.2:0;" });
    // A replay is the same under other demands.
    const past = joined(left.recorded, recorded);
    const played = await play({ sampling: {} }, { past, atEnd: "replay" });
    expect(played.episode.turns).toEqual(episode.turns);
  });

  test("drops a recording that contains its first part", async () => {
    const first = interruptedEngine(cut("Let me"));
    const { recorded } = await play({ engine: first.engine }, first.options);
    const second = preparedEngine([says("I see.")]);
    const failed = play({ engine: second, sampling }, { past: recorded });
    await expect(failed).rejects.toThrow(
      new RecordingEnd(
        "the recording ends after 6 ids of turn 0, which cannot continue: sampling.extra.regex applies to the complete turn",
      ),
    );
    expect(second.requests).toEqual([]);
  });

  test("keeps its first part if the episode's time is over before a weight update restarts it", async () => {
    const hand = createManualClock();
    const clock = createClock(hand);
    const asked: GenerateRequest[] = [];
    const prepared = preparedEngine([cut("Let me"), emptyGeneration()]);
    const again = withResolvers();
    const gate = new PolicyGate(
      {
        ...prepared,
        async generate(request, options) {
          asked.push(request);
          if (asked.length === 2) again.resolve();
          await new Promise<void>((resolve) => {
            options!.cutShort!.addEventListener("abort", () => resolve(), { once: true });
          });
          return await prepared.generate(request);
        },
      },
      { graceMs: 300, clock },
    );
    const limits = { episodeTimeoutMs: 1000, graceTimeoutMs: 300 };
    const playing = play({ engine: gate.engine, sampling, limits, clock, now: () => hand.now() });
    while (asked.length === 0) await setImmediate();
    await hand.advance(600);
    await gate.close("interrupt");
    gate.open();
    await again.promise;
    await hand.advance(400);
    const { episode, recorded } = await playing;
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
    expect(episode.turns.map(({ text, finish }) => [text, finish])).toEqual([["Let me", "length"]]);
    const played = await play({ sampling }, { past: recorded, atEnd: "replay" });
    expect(played.episode.turns).toEqual(episode.turns);
  });
});

describe("an interrupted turn that has no room left at the next start", () => {
  test.each([
    ["as much as there is", 6],
    ["more than there is", 4],
  ])("is the sampled part: %s", async (_, maxTokensPerTurn) => {
    const first = interruptedEngine(cut("Let me"));
    const { recorded } = await play({ engine: first.engine }, first.options);
    const prepared = preparedEngine([says("x")]);
    const engine: Engine = {
      ...prepared,
      async generate(request) {
        assertRequest(request);
        return await prepared.generate(request);
      },
    };
    const limits = { maxTokensPerTurn };
    const { episode, recorded: more } = await play({ engine, limits }, { past: recorded });
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "length", reward: 0 });
    expect(episode.turns.map(({ text, finish }) => [text, finish])).toEqual([["Let me", "length"]]);
    expect(prepared.requests).toEqual([]);
    // A replay is the same under other limits.
    for (const again of [limits, {}]) {
      const played = await play(
        { limits: again, engine: preparedEngine([]) },
        { past: joined(recorded, more), atEnd: "replay" },
      );
      expect(played.episode).toEqual(episode);
    }
  });
});

describe("an engine that returns nothing when an episode is interrupted", () => {
  const limits = { maxTurns: 3, engineTimeoutMs: 60_000, graceTimeoutMs: 200 };

  /** Plays a turn, and is interrupted while the engine is silent in the next, which begins with the given part. */
  async function interruptSilent(past?: Inputs, isNotified = true) {
    const hand = createManualClock();
    const interrupt = new AbortController();
    const prepared = preparedEngine(past === undefined ? [says(switchCall), "hang"] : ["hang"]);
    const engine: Engine = {
      ...prepared,
      async generate(request, options = {}) {
        if (!isNotified)
          options.cutShort!.addEventListener("abort", () => options.onNotCutShort!());
        return await prepared.generate(request, options);
      },
    };
    const playing = play(
      { engine, limits, clock: createClock(hand), now: () => hand.now() },
      { interrupt: interrupt.signal, ...(past && { past }) },
    );
    let isOver = false;
    void playing.then(() => (isOver = true));
    while (prepared.requests.length < (past === undefined ? 2 : 1)) await setImmediate();
    await hand.advance(5000);
    interrupt.abort();
    await hand.advance(199);
    expect(isOver).toBe(false);
    await hand.advance(1);
    return await playing;
  }

  test("is not waited for, and the turns before are kept", async () => {
    const { episode, recorded, troubles } = await interruptSilent();
    expect(episode).toMatchObject({ outcome: "aborted", stopReason: "interrupted" });
    expect(episode.turns.map(({ text }) => text)).toEqual([switchCall]);
    expect(troubles.map(({ code, message }) => [code, message])).toEqual([
      [
        "engine/timeout",
        "Cannot keep what was sampled of turn lamp/test/0#0:1:1;: " +
          "the engine had nothing to show when it was interrupted",
      ],
    ]);
    const rest = preparedEngine([says("Goodbye!"), says("Goodbye!")]);
    const { episode: whole } = await play({ engine: rest, limits }, { past: recorded });
    expect(rest.requests.map(({ requestId }) => requestId)).toEqual([
      "lamp/test/0#0:1.2:1;",
      "lamp/test/0#0:1.2:2;",
    ]);
    expect(whole.turns.map(({ text }) => text)).toEqual([switchCall, "Goodbye!", "Goodbye!"]);
    expect(whole.turns.map(({ discarded }) => discarded)).toEqual([
      undefined,
      [
        {
          requestId: "lamp/test/0#0:1:1;",
          reason: "the engine had nothing to show when it was interrupted",
        },
      ],
      undefined,
    ]);
  });

  test("is not waited for if its server cannot stop early", async () => {
    const { episode } = await interruptSilent(undefined, false);
    expect(episode).toMatchObject({ outcome: "aborted", stopReason: "interrupted" });
    expect(episode.turns.map(({ text }) => text)).toEqual([switchCall]);
  });

  test.each(["before", "after"])(
    "is not waited for if it reports a pause %s the interruption",
    async (place) => {
      const hand = createManualClock();
      const interrupt = new AbortController();
      const prepared = preparedEngine([says(switchCall), "hang"]);
      const engine: Engine = {
        ...prepared,
        async generate(request, options = {}) {
          const isLast = prepared.requests.length === 1;
          if (isLast && place === "before") options.onHeld!(true);
          if (isLast) options.cutShort!.addEventListener("abort", () => options.onHeld!(true));
          return await prepared.generate(request, options);
        },
      };
      const playing = play(
        { engine, limits, clock: createClock(hand), now: () => hand.now() },
        { interrupt: interrupt.signal },
      );
      while (prepared.requests.length < 2) await setImmediate();
      await hand.advance(5000);
      interrupt.abort();
      await hand.advance(200);
      const { episode } = await playing;
      expect(episode).toMatchObject({ outcome: "aborted", stopReason: "interrupted" });
      expect(episode.turns.map(({ text }) => text)).toEqual([switchCall]);
    },
  );

  test("keeps the ids sampled before an earlier interruption", async () => {
    const first = interruptedEngine(cut("Let me"));
    const { recorded } = await play({ engine: first.engine, limits, now: () => 0 }, first.options);
    const { episode } = await interruptSilent(recorded);
    expect(episode).toMatchObject({ outcome: "aborted", stopReason: "interrupted" });
    expect(episode.turns.map(({ text }) => text)).toEqual(["Let me"]);
  });

  test.each<[what: string, endBy: (cutShort: AbortSignal) => unknown]>([
    ["its reason", (cutShort) => cutShort.reason],
    ["an AbortError", () => new DOMException("This operation was aborted", "AbortError")],
  ])("because it ends its call by %s loses that turn alone", async (_, endBy) => {
    const interrupt = new AbortController();
    const prepared = preparedEngine([says(switchCall)]);
    const engine: Engine = {
      ...prepared,
      async generate(request, options = {}) {
        if (prepared.requests.length === 0) return await prepared.generate(request, options);
        interrupt.abort();
        throw endBy(options.cutShort!);
      },
    };
    const { episode, recorded, troubles } = await play(
      { engine, limits },
      { interrupt: interrupt.signal },
    );
    expect(episode).toMatchObject({ outcome: "aborted", stopReason: "interrupted" });
    expect(episode.turns.map(({ text }) => text)).toEqual([switchCall]);
    expect(troubles).toEqual([]);
    const rest = preparedEngine([says("Goodbye!"), says("Goodbye!")]);
    const { episode: whole } = await play({ engine: rest, limits }, { past: recorded });
    expect(rest.requests.map(({ requestId }) => requestId)).toEqual([
      "lamp/test/0#0:1.2:1;",
      "lamp/test/0#0:1.2:2;",
    ]);
    expect(whole.turns[1]!.discarded).toEqual([
      {
        requestId: "lamp/test/0#0:1:1;",
        reason: "the engine had nothing to show when it was cut short",
      },
    ]);
  });

  test("that fails during an interruption fails the episode", async () => {
    const { engine, options } = interruptedEngine(new RolloutError("engine/unreachable", "gone"));
    const { episode } = await play({ engine }, options);
    expect(episode).toMatchObject({ outcome: "failed", failure: { code: "engine/unreachable" } });
  });
});

test("a turn without an id before the deadline does not count in a replay either", async () => {
  const hand = createManualClock();
  const clock = createClock(hand);
  const prepared = preparedEngine([says(switchCall)]);
  const limits = { maxTurns: 3, episodeTimeoutMs: 5000, graceTimeoutMs: 10_000 };
  const engine: Engine = {
    ...prepared,
    async generate(request, options) {
      if (prepared.requests.length === 0) return await prepared.generate(request, options);
      await hand.advance(5000);
      expect(options?.cutShort?.aborted).toBe(true);
      return {
        outputIds: [],
        logprobs: [],
        pieces: [],
        discarded: [],
        finish: { type: "length" },
      };
    },
  };
  const { episode, recorded } = await play({ engine, limits, clock, now: () => hand.now() });
  expect(episode).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
  expect(episode.turns).toHaveLength(1);
  expect(recorded.inputs.at(-2)).toMatchObject({ type: "generation", isLate: true });
  const again = await play({ limits }, { past: recorded, atEnd: "replay" });
  expect(again.episode).toEqual(episode);
});

describe("a turn that was cut short after its stop id", () => {
  const stopped = (text: string): Reply => {
    const outputIds = characterIds(text);
    const piece = { requestId: "r", tokenCount: outputIds.length, policyVersion: "1" } as const;
    return { outputIds, finish: { type: "length" }, pieces: [{ ...piece, finish: "abort" }] };
  };

  test("is complete, and the next start continues after it", async () => {
    const first = interruptedEngine(stopped("Hello."));
    const { recorded, episode: left } = await play(
      {
        engine: first.engine,
        limits: { maxTurns: 2 },
      },
      first.options,
    );
    expect(left).toMatchObject({ outcome: "aborted", stopReason: "interrupted" });
    expect(left.turns).toMatchObject([
      { text: "Hello.", finish: "stop", pieces: [{ tokenCount: 7, finish: "stop" }] },
    ]);
    const rest = preparedEngine([says("Goodbye!")]);
    const { episode } = await play({ engine: rest, limits: { maxTurns: 2 } }, { past: recorded });
    expect(episode.turns.map(({ text }) => text)).toEqual(["Hello.", "Goodbye!"]);
    expect(rest.requests.map(({ requestId }) => requestId)).toEqual(["lamp/test/0#0:1.2:1;"]);
  });

  test("continues with the next ids if the engine ignores stops", async () => {
    const sampling = { extra: { ignore_eos: true } };
    const first = interruptedEngine(stopped("Hello."));
    const { recorded } = await play({ engine: first.engine, sampling }, first.options);
    const rest = preparedEngine([says("Goodbye!")]);
    const { episode } = await play({ engine: rest, sampling }, { past: recorded });
    expect(episode.turns).toHaveLength(1);
    expect(rest.requests.map(({ requestId }) => requestId)).toEqual(["lamp/test/0#0:1.2:0+7;"]);
  });
});

import { setImmediate } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Engine, Generation } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { createClock, type Clock } from "../async/clock.ts";
import { characterIds } from "../testing/character-renderer.ts";
import { createDeferred } from "../testing/deferred.ts";
import { createManualClock, type ManualClock } from "../testing/manual-clock.ts";
import type { Episode } from "./episode.ts";
import { lamp, play, preparedEngine, says, switchCall } from "./lamp-episode.fixture.ts";

/** A clock that is moved by hand, in both its forms. */
function clocks(): { readonly hand: ManualClock; readonly clock: Clock } {
  const hand = createManualClock();
  return { hand, clock: createClock(hand) };
}

/** Answers one turn, then samples until it is cut short. */
function slowEngine(sampled: string, isStopped = false): Engine {
  const first = preparedEngine([says(switchCall)]);
  let turn = 0;
  return {
    ...first,
    async generate(request, options = {}) {
      if (turn++ === 0) return await first.generate(request, options);
      await new Promise((resolve) => options.cutShort!.addEventListener("abort", resolve));
      const outputIds = characterIds(sampled).slice(0, isStopped ? undefined : -1);
      return {
        outputIds,
        logprobs: outputIds.map(() => -0.5),
        finish: { type: "length" },
        pieces: [
          {
            requestId: request.requestId,
            tokenCount: outputIds.length,
            policyVersion: "1",
            finish: "abort",
          },
        ],
        discarded: [],
      } satisfies Generation;
    },
  };
}

/** Waits until `count` waits of that length have started. */
async function untilAsked(hand: ManualClock, ms: number, count: number): Promise<void> {
  while (hand.sleeps.filter((asked) => asked === ms).length < count) {
    await setImmediate();
  }
}

describe("the episode's deadline", () => {
  test("truncates a policy that is still sampling, keeps its sampled tokens, and scores nothing", async () => {
    const { hand, clock } = clocks();
    const playing = play([], {
      engine: slowEngine("I am still think"),
      clock,
      limits: { episodeTimeoutMs: 5000 },
    });
    await untilAsked(hand, 15_000, 2);
    await hand.advance(5000);
    const { episode } = await playing;
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
    expect(episode).not.toHaveProperty("reward");
    expect(episode.turns.map(({ text, finish }) => [text, finish])).toEqual([
      [switchCall, "stop"],
      ["I am still think", "length"],
    ]);
    const [segment] = episode.segments;
    const trained = segment!.tokenIds.filter((_, index) => segment!.lossMask[index] === 1);
    expect(trained).toEqual([
      ...characterIds(switchCall),
      ...characterIds("I am still think").slice(0, -1),
    ]);
  });

  test("accepts an engine that adds a listener each turn and never removes it", async () => {
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    onTestFinished(() => void process.off("warning", onWarning));
    const inner = preparedEngine(Array.from({ length: 12 }, () => says(switchCall)));
    const engine: Engine = {
      ...inner,
      async generate(request, options = {}) {
        options.cutShort?.addEventListener("abort", () => {});
        return await inner.generate(request, options);
      },
    };
    const { episode } = await play([], { engine, limits: { maxTurns: 12 } });
    expect(episode.turns).toHaveLength(12);
    await setImmediate();
    expect(warnings).toEqual([]);
  });

  test("treats a turn that is cut short after its stop id as complete, and performs it", async () => {
    const { hand, clock } = clocks();
    const playing = play([], {
      engine: slowEngine("Goodbye!", true),
      clock,
      limits: { episodeTimeoutMs: 5000 },
    });
    await untilAsked(hand, 15_000, 2);
    await hand.advance(5000);
    const { episode } = await playing;
    expect(episode.turns.at(-1)).toMatchObject({ text: "Goodbye!", finish: "stop" });
    expect(episode).toMatchObject({ outcome: "completed", stopReason: "user-left", reward: 1 });
  });

  test("blames an engine that returns no ids", async () => {
    for (const engine of [slowEngine(""), preparedEngine([says(switchCall), "hang"])]) {
      const { hand, clock } = clocks();
      const limits = { episodeTimeoutMs: 5000, graceTimeoutMs: 5000 };
      const playing = play([], { engine, clock, limits });
      await untilAsked(hand, 10_000, 2);
      await hand.advance(10_000);
      const { episode } = await playing;
      expect(episode).toMatchObject({
        outcome: "failed",
        failure: {
          party: "engine",
          code: "engine/timeout",
          message:
            "Cannot sample turn lamp/test/0#0:1:1;: the engine had nothing to show when the episode's time was over",
        },
      });
      expect(episode.turns).toHaveLength(1);
    }
  });

  test("does not blame an engine that was called shortly before and returns no ids", async () => {
    const { hand, clock } = clocks();
    const limits = { episodeTimeoutMs: 5000, graceTimeoutMs: 5001 };
    const playing = play([], { engine: slowEngine(""), clock, limits });
    await untilAsked(hand, 10_001, 2);
    await hand.advance(5000);
    const { episode, troubles } = await playing;
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
    expect(episode).not.toHaveProperty("reward");
    expect(episode.turns.map(({ text }) => text)).toEqual([switchCall]);
    expect(troubles).toEqual([]);
  });

  /** Answers one turn, and ends the next with the callback's result when it is interrupted. */
  function rejectingEngine(endBy: (cutShort: AbortSignal) => unknown): Engine {
    const engine = preparedEngine([says(switchCall)]);
    return {
      ...engine,
      async generate(request, options = {}) {
        if (engine.requests.length === 0) return await engine.generate(request, options);
        await new Promise((resolve) => options.cutShort!.addEventListener("abort", resolve));
        throw endBy(options.cutShort!);
      },
    };
  }

  const byTheCut: readonly [what: string, endBy: (cutShort: AbortSignal) => unknown][] = [
    ["its reason", (cutShort) => cutShort.reason],
    ["an AbortError", () => new DOMException("This operation was aborted", "AbortError")],
  ];

  test.each(byTheCut)(
    "treats an engine that ends its interrupted call by %s as one without partial results",
    async (_, endBy) => {
      const ends: Episode[] = [];
      for (const graceTimeoutMs of [5000, 5001]) {
        const { hand, clock } = clocks();
        const limits = { episodeTimeoutMs: 5000, graceTimeoutMs };
        const playing = play([], { engine: rejectingEngine(endBy), clock, limits });
        await untilAsked(hand, 5000 + graceTimeoutMs, 2);
        await hand.advance(5000);
        ends.push((await playing).episode);
      }
      const [asked, justAsked] = ends;
      expect(asked).toMatchObject({
        outcome: "failed",
        failure: {
          code: "engine/timeout",
          message:
            "Cannot sample turn lamp/test/0#0:1:1;: the engine had nothing to show when the episode's time was over",
        },
      });
      expect(justAsked).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
      expect(justAsked!.turns.map(({ text }) => text)).toEqual([switchCall]);
    },
  );

  test.each<[what: string, thrown: Error, code: string]>([
    ["refused", new RolloutError("engine/unreachable", "gone"), "engine/unreachable"],
    ["torn", new TypeError("fetch failed"), "engine/exception"],
    ["given up by itself", new DOMException("15 s", "TimeoutError"), "engine/exception"],
  ])(
    "treats a call that is %s after the deadline as a failure of the engine",
    async (_, thrown, code) => {
      const { hand, clock } = clocks();
      const limits = { episodeTimeoutMs: 5000, graceTimeoutMs: 5001 };
      const playing = play([], { engine: rejectingEngine(() => thrown), clock, limits });
      await untilAsked(hand, 10_001, 2);
      await hand.advance(5000);
      const { episode } = await playing;
      expect(episode).toMatchObject({ outcome: "failed", failure: { code } });
    },
  );

  /** Answers one turn, and the next in its own time. Its server cannot stop early. */
  function unstoppableEngine(
    clock: Clock,
    { reply, afterMs }: { readonly reply: Partial<Generation>; readonly afterMs: number },
  ): Engine {
    const engine = preparedEngine([says(switchCall), reply]);
    return {
      ...engine,
      async generate(request, options = {}) {
        if (engine.requests.length === 1) {
          options.cutShort!.addEventListener("abort", () => options.onNotCutShort!());
          await clock.sleep(afterMs);
        }
        return await engine.generate(request, options);
      },
    };
  }

  const ownTime = { episodeTimeoutMs: 5000, graceTimeoutMs: 1000, engineTimeoutMs: 60_000 };

  test("keeps the complete turn of an engine that cannot stop early, up to its own time limit", async () => {
    const { hand, clock } = clocks();
    const engine = unstoppableEngine(clock, { reply: says(switchCall), afterMs: 59_999 });
    const playing = play([], { engine, clock, limits: ownTime });
    await hand.untilSleeping(59_999);
    await hand.advance(59_999);
    const { episode } = await playing;
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
    expect(episode).not.toHaveProperty("reward");
    expect(episode.turns.map(({ text, finish }) => [text, finish])).toEqual([
      [switchCall, "stop"],
      [switchCall, "stop"],
    ]);
    expect(episode.counts.sampledTokenCount).toBe(2 * characterIds(switchCall).length);
  });

  test("does not count pauses of the policy for an engine that cannot stop early", async () => {
    const { hand, clock } = clocks();
    const inner = unstoppableEngine(clock, { reply: says("Goodbye!"), afterMs: 100_000 });
    let hold: ((isHeld: boolean) => void) | undefined;
    const engine: Engine = {
      ...inner,
      async generate(request, options) {
        hold = options?.onHeld;
        return await inner.generate(request, options);
      },
    };
    const playing = play([], { engine, clock, limits: ownTime });
    await hand.untilSleeping(100_000);
    await hand.advance(20_000);
    hold!(true);
    await hand.advance(50_000);
    hold!(false);
    await hand.advance(30_000);
    const { episode } = await playing;
    expect(episode).toMatchObject({ outcome: "completed", stopReason: "user-left" });
  });

  test("blames an engine that cannot stop early when its own time limit is over", async () => {
    const { hand, clock } = clocks();
    const engine = unstoppableEngine(clock, { reply: says(switchCall), afterMs: 60_001 });
    const playing = play([], { engine, clock, limits: ownTime });
    await hand.untilSleeping(60_001);
    await hand.advance(60_000);
    const { episode } = await playing;
    expect(episode.failure).toEqual({
      party: "engine",
      code: "engine/timeout",
      message: "Cannot sample turn lamp/test/0#0:1:1;: no answer within 60000 ms",
    });
  });

  test("blames no party if a weight update cancels the sampling of such an engine", async () => {
    const { hand, clock } = clocks();
    const nothing = { outputIds: [], finish: { type: "length" }, pieces: [] } as const;
    const inner = unstoppableEngine(clock, { reply: nothing, afterMs: 8000 });
    const engine: Engine = {
      ...inner,
      async generate(request, options) {
        const generation = await inner.generate(request, options);
        if (generation.outputIds.length === 0) options!.onAbandoned!();
        return generation;
      },
    };
    const playing = play([], { engine, clock, limits: ownTime });
    await hand.untilSleeping(8000);
    await hand.advance(8000);
    const { episode, troubles } = await playing;
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
    expect(episode).not.toHaveProperty("reward");
    expect(episode.turns.map(({ text }) => text)).toEqual([switchCall]);
    expect(troubles).toEqual([]);
  });

  test("blames an engine that cannot stop early and then fails", async () => {
    const { hand, clock } = clocks();
    const engine = unstoppableEngine(clock, {
      reply: { outputIds: [], finish: { type: "length" }, pieces: [] },
      afterMs: 8000,
    });
    const playing = play([], { engine, clock, limits: ownTime });
    await hand.untilSleeping(8000);
    await hand.advance(8000);
    const { episode } = await playing;
    // A broken request has an empty reply. Being unable to stop early excuses only the wait.
    expect(episode.failure).toEqual({
      party: "engine",
      code: "engine/timeout",
      message:
        "Cannot sample turn lamp/test/0#0:1:1;: the engine had nothing to show when the episode's time was over",
    });
    expect(episode.turns).toHaveLength(1);
  });

  test("blames an engine that is silent for longer than its own limit", async () => {
    const { hand, clock } = clocks();
    const limits = { engineTimeoutMs: 700 };
    const playing = play(["hang"], { clock, limits });
    await hand.untilSleeping(700);
    await hand.advance(700);
    expect((await playing).episode.failure).toEqual({
      party: "engine",
      code: "engine/timeout",
      message: "Cannot sample turn lamp/test/0#0:1:0;: no answer within 700 ms",
    });
  });

  test("lets a tool finish within its own time limit, records the turn, and samples no other", async () => {
    const { hand, clock } = clocks();
    const environment = lamp();
    const slow = {
      ...environment,
      open: async (...given: Parameters<typeof environment.open>) => {
        const world = await environment.open(...given);
        return {
          ...world,
          [Symbol.asyncDispose]: async () => await world[Symbol.asyncDispose](),
          step: async (...args: Parameters<typeof world.step>) => {
            await clock.sleep(3000);
            return await world.step(...args);
          },
        };
      },
    };
    const playing = play([says(`${switchCall}\n${switchCall}`)], {
      environment: slow,
      clock,
      limits: { episodeTimeoutMs: 2000 },
    });
    await hand.untilSleeping(3000);
    await hand.advance(3000);
    const { episode } = await playing;
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
    expect(episode.turns[0]!.steps).toMatchObject([{ source: "switch", observation: "on" }]);
    expect(episode.counts).toMatchObject({ turnCount: 1, toolCallCount: 1 });
    expect(episode.messages.map(({ role }) => role)).toEqual([
      "system",
      "user",
      "assistant",
      "tool",
    ]);
  });

  test("an engine that never ends its pause does not stop the time of other calls", async () => {
    const { hand, clock } = clocks();
    const { promise: asked, resolve } = createDeferred();
    const inner = preparedEngine([says(switchCall)]);
    const answers: ((isHeld: boolean) => void)[] = [];
    const engine: Engine = {
      ...inner,
      async generate(request, options) {
        answers.push(options!.onHeld!);
        options?.onHeld?.(true);
        return await inner.generate(request, options);
      },
    };
    const environment = lamp(() => {
      // The same for a report outside of a call.
      for (const tell of answers) tell(true);
      resolve();
      return new Promise<never>(() => {}) as never;
    });
    const playing = play([], { engine, environment, clock, limits: { toolTimeoutMs: 700 } });
    await asked;
    await hand.advance(700);
    expect((await playing).episode.failure).toMatchObject({ code: "environment/timeout" });
  });

  test("ends a tool that never answers at its own time limit, and records the turn", async () => {
    const { hand, clock } = clocks();
    const { promise: asked, resolve } = createDeferred();
    const environment = lamp(() => {
      resolve();
      return new Promise<never>(() => {}) as never;
    });
    const playing = play([says(switchCall)], {
      environment,
      clock,
      limits: { episodeTimeoutMs: 2000, toolTimeoutMs: 60_000 },
    });
    await asked;
    await hand.advance(60_000);
    const { episode } = await playing;
    expect(episode).toMatchObject({
      outcome: "failed",
      failure: { party: "environment", code: "environment/timeout" },
    });
    expect(episode.turns).toMatchObject([{ text: switchCall, steps: [] }]);
    expect(episode.counts.sampledTokenCount).toBe(characterIds(switchCall).length);
  });
});

test("a prompt that the engine finds too long fills the context", async () => {
  const tooLong = new RolloutError("engine/prompt-too-long", "9000 tokens, 8192 allowed");
  const { episode } = await play([says(switchCall), tooLong]);
  expect(episode).toMatchObject({ outcome: "truncated", stopReason: "context-full", reward: 0 });
  expect(episode).not.toHaveProperty("failure");
});

import { createHash } from "node:crypto";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Agent, Intent } from "../../agent/agent.ts";
import { createToolCallingAgent } from "../../agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../agent/tool-use-policy.ts";
import type { Engine } from "../../engine/engine.ts";
import type { Environment } from "../../environment/environment.ts";
import { createSeededRandom, type Random } from "../../environment/seeded-random.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { createClock, type Clock } from "../../async/clock.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { OutsideMisuse, type Outside } from "../../outside.ts";
import { findToolCallParser } from "../../../packages/tool-parsers/src/registry.ts";
import { characterIds, createCharacterRenderer } from "../../testing/character-renderer.ts";
import { createManualClock } from "../../testing/manual-clock.ts";
import { toSamples } from "../../trajectory/sample.ts";
import { verifySample } from "../../trajectory/verify-sample.ts";
import { llmUser } from "../../user/llm-user.ts";
import { createScriptedUser } from "../../user/scripted-user.ts";
import type { User } from "../../user/user.ts";
import type { Episode } from "../episode.ts";
import type { EpisodeSetup } from "../episode-setup.ts";
import { inputsBefore, type Input, type Inputs } from "./input.ts";
import { RecordingEnd, ReplayDivergence } from "./playback-stop.ts";
import { lamp, lampTask, preparedEngine, switchCall, type Reply } from "../lamp-episode.fixture.ts";
import { defaultLimits, type EpisodeLimits } from "../limits.ts";
import { playEpisode, type PlayEpisodeOptions } from "../play-episode.ts";

const replies: readonly Reply[] = [
  { outputIds: characterIds("One moment, please.") },
  { outputIds: characterIds(switchCall), cachedTokenCount: 3 },
  { outputIds: characterIds("Goodbye!") },
];

/** The line of a script with which its user leaves. */
const leaving = { text: "Thanks.", leaves: true } as const;

const repeatableLamp: Environment = { ...lamp(), repeatable: true };

/** Repeats its model's line, and counts the model's calls. */
function countingUser(): { readonly user: User; readonly asked: { count: number } } {
  const asked = { count: 0 };
  const lines = ["Lamp on, please.", "Fine, I wait.", "###STOP###"];
  const user = llmUser({
    model: {
      name: "clerk",
      complete: async () => ({
        text: lines[asked.count++] ?? "?",
        inputTokenCount: 10,
        outputTokenCount: 2,
        costUsd: 0.5,
        finishReason: "stop",
      }),
    },
  });
  return { user, asked };
}

interface Playing {
  readonly environment?: Environment;
  readonly user?: User;
  readonly engine?: Engine;
  readonly now?: () => number;
  readonly limits?: EpisodeLimits;
  readonly agent?: Agent;
  readonly clock?: Clock;
}

const caller = createToolCallingAgent({
  parser: findToolCallParser("qwen25"),
  toolUsePolicy: toolUsePolicies.many,
});

/** Refuses the calls of the second turn, for this reason. */
function refusing(why: Pick<Extract<Intent, { type: "refuse" }>, "status" | "observation">): Agent {
  return {
    ...caller,
    read(turn) {
      const reading = caller.read(turn);
      const [first] = reading.intents;
      if (turn.turnIndex !== 1 || first === undefined) return reading;
      const { callId } = first;
      return { ...reading, intents: [{ type: "refuse", name: "switch", callId, ...why }] };
    },
  };
}

/** Each reading advances the time. */
function ticking(from = 1000): () => number {
  let now = from;
  return () => (now += 7);
}

async function play(
  {
    environment = repeatableLamp,
    user,
    engine,
    now = ticking(),
    limits = defaultLimits,
    agent = caller,
    clock,
  }: Playing,
  options: Partial<PlayEpisodeOptions> & { readonly start?: number } = {},
): Promise<{
  readonly episode: Episode;
  readonly recorded: Inputs;
  /** Each ends with a policy call, but for the last. */
  readonly batches: readonly Inputs[];
}> {
  const setup: EpisodeSetup = {
    environment,
    user: user ?? countingUser().user,
    engine: engine ?? preparedEngine(replies),
    renderer: createCharacterRenderer(),
    agent,
    sampling: {},
    limits,
    now,
    ...(clock && { clock }),
  };
  const batches: Inputs[] = [];
  const { start = 1, ...rest } = options;
  const episode = await playEpisode(
    {
      task: lampTask,
      rolloutId: "lamp/test/0#0",
      groupId: "lamp/test/0",
      sampleIndex: 0,
      seed: 0,
      start,
    },
    setup,
    {
      signal: new AbortController().signal,
      onInputs: (more) => batches.push(more),
      ...rest,
    },
  );
  return { episode, recorded: joined(batches), batches: byPolicyCall(batches) };
}

/** Joins each policy call with the inputs handed over before it. */
function byPolicyCall(handed: readonly Inputs[]): readonly Inputs[] {
  const turns: Inputs[] = [];
  let begun: Inputs[] = [];
  for (const more of handed) {
    begun.push(more);
    if (more.inputs.at(-1)?.type !== "generation") continue;
    turns.push(joined(begun));
    begun = [];
  }
  return begun.length === 0 ? turns : [...turns, joined(begun)];
}

/** Neither engine nor model nor clock is there. */
const nothing: Required<Omit<Playing, "limits" | "agent" | "clock">> = {
  environment: repeatableLamp,
  user: llmUser({
    model: { name: "clerk", complete: () => Promise.reject(new Error("there is no model")) },
  }),
  engine: {
    ...preparedEngine([]),
    generate: () => Promise.reject(new Error("there is no engine")),
  },
  now: () => {
    throw new Error("there is no clock");
  },
};

/** As it is written and read. */
function stored(inputs: Inputs): Inputs {
  return JSON.parse(JSON.stringify(inputs)) as Inputs;
}

function joined(batches: readonly Inputs[]): Inputs {
  return {
    inputs: batches.flatMap((batch): readonly Input[] => batch.inputs),
    times: batches.flatMap((batch) => batch.times),
  };
}

function nameOfInput(input: Input): string {
  return "what" in input ? input.what : input.type;
}

describe("an episode and its recording", () => {
  test("an episode that was interrupted with no time left is over, and the engine is not blamed", async () => {
    const { batches } = await play({});
    const [before] = batches;
    const past: Inputs = {
      inputs: before!.inputs.map((input) =>
        input.type === "generation" && "value" in input.outcome
          ? {
              ...input,
              isPartial: true,
              outcome: { value: { ...input.outcome.value, finish: { type: "length" } } },
            }
          : input,
      ),
      times: [...before!.times, before!.times[0]! + defaultLimits.episodeTimeoutMs],
    };
    const { user } = countingUser();
    const { episode, recorded } = await play({ ...nothing, user, now: ticking() }, { past });
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
    expect(episode.turns.map(({ text }) => text)).toEqual(["One moment, please."]);
    const again = await play(nothing, { past: joined([past, recorded]), atEnd: "replay" });
    expect(again.episode).toEqual(episode);
  });

  test.each([3_600_000, -3_600_000])(
    "a change of the system clock by %d ms does not change the time left",
    async (ms) => {
      let atMs = 1_700_000_000_000;
      const clock = vi.spyOn(Date, "now").mockImplementation(() => atMs);
      onTestFinished(() => clock.mockRestore());
      const prepared = preparedEngine(replies);
      const engine: Engine = {
        ...prepared,
        generate: async (...call) => {
          atMs += ms;
          return await prepared.generate(...call);
        },
      };
      const { batches, episode } = await play({ engine, now: Date.now });
      const past = joined(batches.slice(0, 2));
      const rest = preparedEngine(replies.slice(2));
      const { user, asked } = countingUser();
      asked.count = 2;
      const { episode: again } = await play({ user, engine: rest, now: Date.now }, { past });
      expect(again).toMatchObject({ outcome: "completed", reward: 1 });
      for (const { durationMs, turns } of [episode, again]) {
        expect(Math.abs(durationMs)).toBeLessThan(Math.abs(ms));
        expect(turns.every(({ engineMs }) => engineMs >= 0)).toBe(true);
      }
    },
  );

  test("a turn's duration counts before and after a stop within or after the turn", async () => {
    const sampleMs = 60_000;
    let atMs = 1_000_000;
    const now = (): number => atMs;
    const slow = (engine: Engine, onCall: (callIndex: number) => void = () => {}): Engine => {
      let callCount = 0;
      return {
        ...engine,
        generate: async (...call) => {
          atMs += sampleMs;
          onCall(callCount++);
          return await engine.generate(...call);
        },
      };
    };
    const ids = characterIds("One moment, please.");
    const cut: Reply = { outputIds: ids.slice(0, 4), finish: { type: "length" } };
    const interrupt = new AbortController();
    const user = createScriptedUser({ lines: ["Lamp?", "Yes?", { text: "Bye.", leaves: true }] });
    const first = slow(preparedEngine([cut]), () => interrupt.abort());
    const { episode: left, recorded } = await play(
      { engine: first, user, now },
      { interrupt: interrupt.signal },
    );
    expect(left.turns[0]).toMatchObject({ text: "One ", engineMs: sampleMs });
    // No attempt is playing in the meantime.
    atMs += 1_000_000_000;
    const stop = new AbortController();
    const rest: readonly Reply[] = [{ outputIds: ids.slice(4) }, replies[1]!];
    const second = slow(preparedEngine(rest), (index) => index === 2 && stop.abort());
    const batches: Inputs[] = [];
    const killed = play(
      { engine: second, user, now },
      {
        past: stored(recorded),
        start: 2,
        signal: stop.signal,
        onInputs: (more) => batches.push(more),
      },
    );
    await expect(killed).rejects.toThrow(/abort/);
    atMs += 1_000_000_000;
    const past = stored(joined([recorded, ...batches]));
    const third = slow(preparedEngine(replies.slice(2)));
    const { episode, recorded: more } = await play(
      { engine: third, user, now },
      { past, start: 3 },
    );
    expect(episode.turns.map(({ text }) => text)).toEqual([
      "One moment, please.",
      switchCall,
      "Goodbye!",
    ]);
    expect(episode.turns.map(({ engineMs }) => engineMs)).toEqual([
      2 * sampleMs,
      sampleMs,
      sampleMs,
    ]);
    expect(episode.durationMs).toBe(4 * sampleMs);
    const again = await play(
      { ...nothing, user },
      { past: joined([past, more]), atEnd: "replay", start: 3 },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    // The earlier part of the attempt leaves it only the rest of its time.
    const limits = { ...defaultLimits, episodeTimeoutMs: 3 * sampleMs };
    const late = await play({ engine: preparedEngine([]), user, now, limits }, { past, start: 3 });
    expect(late.episode).toMatchObject({ outcome: "truncated", stopReason: "deadline" });
  });

  test("playing the recorded part does not use the episode's time", async () => {
    const hand = createManualClock();
    const callMs = 300_000;
    const environment: Environment = {
      ...repeatableLamp,
      async open(task, options) {
        const world = await repeatableLamp.open(task, options);
        return {
          ...world,
          step: async (action, call) => {
            if (action.type === "call") await hand.advance(callMs);
            return await world.step(action, call);
          },
        };
      },
    };
    const calls = [switchCall, switchCall, "Goodbye!"].map((text) => ({
      outputIds: characterIds(text),
    }));
    const playIt = async (
      rest: readonly Reply[],
      { ms = 800_000, ...options }: Partial<PlayEpisodeOptions> & { readonly ms?: number } = {},
    ) =>
      await play(
        {
          environment,
          user: createScriptedUser({ lines: ["Lamp on, please.", { text: "Bye.", leaves: true }] }),
          engine: preparedEngine(rest),
          clock: createClock({ now: hand.now, sleep: hand.sleep }),
          now: hand.now,
          limits: { ...defaultLimits, episodeTimeoutMs: ms, toolTimeoutMs: 10 * ms },
        },
        options,
      );
    const { episode, recorded, batches } = await playIt(calls);
    expect(episode).toMatchObject({ outcome: "completed", durationMs: 2 * callMs });
    // The second call was not over when it was killed.
    const past = stored(joined(batches.slice(0, 2)));
    const resumed = await playIt(calls.slice(2), { past });
    expect(resumed.episode).toMatchObject({ outcome: "completed", durationMs: 2 * callMs });
    const fork = { past: inputsBefore(stored(recorded), 2)!, forkAt: 2 };
    const forked = await playIt(calls.slice(2), fork);
    expect(forked.episode).toMatchObject({ outcome: "completed", durationMs: 2 * callMs });
    // The live part uses the remaining time.
    const late = await playIt(calls.slice(2), { past, ms: 500_000 });
    expect(late.episode).toMatchObject({
      outcome: "truncated",
      stopReason: "deadline",
      durationMs: 2 * callMs,
    });
  });

  test("has no turn if it was interrupted before the first id", async () => {
    const interrupt = new AbortController();
    const engine: Engine = {
      ...preparedEngine([]),
      async generate(request, options) {
        interrupt.abort();
        const finish = { type: "length" } as const;
        const piece = {
          requestId: "a",
          tokenCount: 0,
          policyVersion: "1",
          finish: "abort",
        } as const;
        const nothingYet = preparedEngine([{ outputIds: [], pieces: [piece], finish }]);
        return await nothingYet.generate(request, options);
      },
    };
    const { episode: left, recorded } = await play({ engine }, { interrupt: interrupt.signal });
    expect(left).toMatchObject({ outcome: "aborted", stopReason: "interrupted", turns: [] });
    expect(left.counts).toMatchObject({ turnCount: 0, sampledTokenCount: 0 });
    expect(left.segments[0]?.turns).toEqual([]);
    const { inputs, times } = recorded;
    const past = { inputs, times: [...times, times[0]! + defaultLimits.episodeTimeoutMs] };
    const { user, asked } = countingUser();
    asked.count = 1;
    const { episode, recorded: more } = await play(
      { ...nothing, user, now: ticking() },
      { past: stored(past), start: 2 },
    );
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "deadline", turns: [] });
    expect(episode.segments.map(({ turns, lossMask }) => [turns, lossMask.includes(1)])).toEqual([
      [[], false],
    ]);
    const [row] = toSamples(episode.segments, episode, episode);
    expect(verifySample(JSON.parse(JSON.stringify(row)))).toEqual([]);
    const again = await play(nothing, { past: joined([past, more]), atEnd: "replay", start: 2 });
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  test("is replayed to the byte, without an engine, a model or a clock", async () => {
    const { episode, recorded } = await play({});
    expect(episode).toMatchObject({ outcome: "completed", reward: 1, format: 1 });
    expect(episode.userUsage).toMatchObject({ callCount: 3, costUsd: 1.5 });
    expect(episode.durationMs).toBeGreaterThan(0);
    const again = await play(nothing, { past: stored(recorded), atEnd: "replay" });
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    expect(again.recorded).toEqual({ inputs: [], times: [] });
  });

  test.each([1, 2, 3])("continues live after %i recorded turns, in the same way", async (calls) => {
    const { episode, recorded, batches } = await play({});
    const { user, asked } = countingUser();
    asked.count = calls === 1 ? 1 : 2;
    const engine = preparedEngine(replies.slice(calls));
    const past = joined(batches.slice(0, calls));
    const { episode: second, recorded: more } = await play(
      { user, engine },
      { past: stored(past), start: 2 },
    );
    expect(JSON.stringify(second.segments)).toBe(JSON.stringify(episode.segments));
    expect(second.messages).toEqual(episode.messages);
    expect(second.userUsage).toEqual(episode.userUsage);
    expect({ ...second, startedAtMs: 0, durationMs: 0, turns: [], segments: [] }).toEqual({
      ...episode,
      startedAtMs: 0,
      durationMs: 0,
      turns: [],
      segments: [],
    });
    expect(engine.requests).toHaveLength(3 - calls);
    expect(engine.requests.every(({ requestId }) => requestId.includes(":1.2:"))).toBe(true);
    // Only new inputs are recorded after the old ones.
    expect([...past.inputs, ...more.inputs].map(({ type }) => type)).toEqual(
      recorded.inputs.map(({ type }) => type),
    );
    const { episode: third } = await play(nothing, {
      past: { inputs: [...past.inputs, ...more.inputs], times: [...past.times, ...more.times] },
      atEnd: "replay",
      start: 2,
    });
    expect(JSON.stringify(third.segments)).toBe(JSON.stringify(episode.segments));
  });

  test("a failure is replayed", async () => {
    const failing = preparedEngine([
      replies[0]!,
      new RolloutError("engine/overloaded", "Cannot sample: 503", { retryable: true }),
    ]);
    const { episode, recorded } = await play({ engine: failing });
    expect(episode).toMatchObject({ outcome: "failed", failure: { code: "engine/overloaded" } });
    const again = await play(nothing, { past: stored(recorded), atEnd: "replay" });
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  test("reports the first different answer of the environment", async () => {
    const { recorded } = await play({});
    const changed: Environment = {
      ...lamp((action) =>
        action.type === "call"
          ? { observation: "the bulb is gone", from: "tool", source: "switch" }
          : undefined,
      ),
      repeatable: true,
    };
    const again = play({ ...nothing, environment: changed }, { past: recorded, atEnd: "replay" });
    await expect(again).rejects.toThrow(ReplayDivergence);
    await expect(again).rejects.toThrow("step switch brings another answer");
    await expect(again).rejects.toThrow("the bulb is gone");
  });

  test("reports that the policy would get other ids", async () => {
    const { recorded } = await play({});
    const environment = { ...repeatableLamp, policyText: "You break the lamp." };
    const again = play({ ...nothing, environment }, { past: recorded, atEnd: "replay" });
    await expect(again).rejects.toThrow(/the policy is asked with other ids than before/);
  });

  test("reports the end of the recording", async () => {
    const { batches } = await play({});
    const again = play(nothing, { past: joined(batches.slice(0, 2)), atEnd: "replay" });
    await expect(again).rejects.toThrow(RecordingEnd);
  });

  test("reports a recorded turn without logprobs", async () => {
    const { recorded } = await play({});
    const damaged = {
      ...recorded,
      inputs: recorded.inputs.map((input) =>
        input.type === "generation" && "value" in input.outcome
          ? { ...input, outcome: { value: { ...input.outcome.value, logprobs: [] } } }
          : input,
      ),
    };
    const again = play(nothing, { past: damaged, atEnd: "replay" });
    await expect(again).rejects.toThrow(RecordingEnd);
    await expect(again).rejects.toThrow("the recording ends before a damaged turn: ");
  });

  test.each([false, true])(
    "a score that catches a divergence does not count, scored again: %s",
    async (scoreAnew) => {
      const judgedBy = (judge: string): Environment => ({
        ...repeatableLamp,
        async open(task, options) {
          const world = await repeatableLamp.open(task, options);
          world.score = async () => {
            try {
              return { reward: await options.outside!(`chat ${judge}`, () => 1), details: {} };
            } catch {
              return { reward: 0, details: { judge: "did not answer" } };
            }
          };
          return world;
        },
      });
      const { episode, recorded } = await play({ environment: judgedBy("ann") });
      expect(episode.reward).toBe(1);
      const past = stored(recorded);
      const options = { past, atEnd: "replay", scoreAnew } as const;
      const again = await play({ ...nothing, environment: judgedBy("ann") }, options);
      expect(again.episode.reward).toBe(1);
      const other = play({ ...nothing, environment: judgedBy("bob") }, options);
      await expect(other).rejects.toThrow(ReplayDivergence);
      await expect(other).rejects.toThrow("chat bob is called where chat ann was");
    },
  );

  test("a user that catches a divergence while it is opened still fails", async () => {
    const opening = (what: string): User => {
      const { user } = countingUser();
      return {
        ...user,
        open(task, options) {
          void options.outside!(what, () => "calm").catch(() => {});
          return user.open(task, options);
        },
      };
    };
    const { recorded } = await play({ user: opening("draw mood") });
    const again = play(
      { ...nothing, user: opening("draw temper") },
      { past: stored(recorded), atEnd: "replay" },
    );
    await expect(again).rejects.toThrow("draw temper is called where draw mood was");
  });

  test("a world that is not repeatable answers from the recording, and cannot continue live", async () => {
    let stepCount = 0;
    const environment = lamp(() => void stepCount++);
    const { user } = countingUser();
    const { repeatable: _not, ...odd } = user;
    const { episode, recorded, batches } = await play({ environment, user: odd });
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
    const before = stepCount;
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    expect(stepCount).toBe(before);
    const live = play({ environment, user: odd }, { past: joined(batches.slice(0, 2)) });
    await expect(live).rejects.toThrow(
      "the worlds of lamp are not repeatable: the episode cannot continue from its recording",
    );
  });

  test("getters of a step are recorded if the world is not repeatable", async () => {
    class Shown {
      readonly source = "switch";
      get observation(): string {
        return "on";
      }
      get from(): "tool" {
        return "tool";
      }
    }
    const environment = lamp(({ type }) => (type === "call" ? new Shown() : undefined));
    const { episode, recorded } = await play({ environment });
    expect(episode.turns[1]!.steps).toMatchObject([{ source: "switch", observation: "on" }]);
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    // The hash of a repeatable call depends only on its JSON, as before.
    const repeatable = await play({ environment: { ...environment, repeatable: true } });
    const step = repeatable.recorded.inputs.find(
      (input) => "what" in input && input.what === "step switch",
    );
    const hash = createHash("sha256").update('{"source":"switch"}').digest("hex").slice(0, 16);
    expect(step).toMatchObject({ outcome: { hash } });
  });

  test.each([true, false])(
    "getters of a step reveal no secret (repeatable: %s)",
    async (repeatable) => {
      class Shown {
        readonly raw = "on, by s3cr3t-key";
        readonly from = "tool";
        readonly source = "switch";
        get observation(): string {
          return this.raw;
        }
      }
      const world = lamp(({ type }) => (type === "call" ? new Shown() : undefined));
      const environment = { ...world, repeatable };
      const redactor = new Redactor(["s3cr3t-key"]);
      const { episode, recorded } = await play({ environment }, { redactor });
      expect(episode.turns[1]!.steps).toMatchObject([{ observation: "on, by [redacted]" }]);
      expect(episode.messages.map(({ content }) => content).join()).not.toContain("s3cr3t");
      const again = await play(
        { ...nothing, environment },
        { past: stored(recorded), atEnd: "replay", redactor },
      );
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    },
  );

  test("a user that is not repeatable is replayed, regardless of the calls for its lines", async () => {
    const { user } = countingUser();
    const { repeatable: _not, ...odd } = user;
    const { episode, recorded } = await play({ user: odd });
    expect(recorded.inputs.flatMap((input) => ("what" in input ? [input.what] : []))).toEqual([
      "open",
      "user.begin()",
      "begin",
      "user.reply()",
      "step say",
      "step switch",
      "user.reply()",
      "step say",
      "score",
      "usage",
    ]);
    const { repeatable: _nor, ...silent } = nothing.user;
    const again = await play(
      { ...nothing, user: silent },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  test("a recorded error has its name and its code in a replay", async () => {
    const cause = Object.assign(new Error("connect refused"), { code: "ECONNREFUSED" });
    const refused = Object.assign(new Error("no answer", { cause }), {
      name: "TimeoutError",
      code: "EAWAY",
    });
    const environment: Environment = {
      ...repeatableLamp,
      async open(task, options) {
        const world = await repeatableLamp.open(task, options);
        const step = world.step.bind(world);
        world.step = async (action, call) => {
          const stepped = await step(action, call);
          if (action.type !== "call") return stepped;
          const why: unknown = await options.outside!("bulb", () => Promise.reject(refused)).catch(
            (error: unknown) => error,
          );
          const { name, message, code } = why as typeof refused;
          const { cause: inner } = why as { readonly cause: typeof cause };
          const said = `${name} (${code}): ${message}, ${inner.message} (${inner.code})`;
          return { ...stepped, observation: said };
        };
        return world;
      },
    };
    const { episode, recorded } = await play({ environment });
    expect(episode.turns[1]?.steps[0]?.observation).toBe(
      "TimeoutError (EAWAY): no answer, connect refused (ECONNREFUSED)",
    );
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  test.each([
    ["a text", "not found", '"not found"'],
    ["a reply", { status: 404, body: ["no", null] }, '{"status":404,"body":["no",null]}'],
    ["nothing", null, "null"],
    ["an error that a text led to", new Error("inner", { cause: "not found" }), '"not found"'],
  ])("a recorded error has its cause in a replay: %s", async (_, cause, observed) => {
    const thrown = new Error("the service refused", { cause });
    const environment = lampThatCalls(async (outside) => {
      const why: unknown = await outside("bulb", () => Promise.reject(thrown)).catch(
        (error: unknown) => error,
      );
      const found = (why as Error).cause;
      return JSON.stringify(found instanceof Error ? found.cause : found);
    });
    const { episode, recorded } = await play({ environment });
    expect(episode.turns[1]?.steps[0]?.observation).toBe(observed);
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  describe("of a world that cancels a request to the user by its own signal", () => {
    const silence = "(silence)";
    const tellsThrown = (thrown: unknown): string => {
      const { name, message } = thrown as Error;
      return `${name}: ${message}`;
    };

    /** Cancels the wait when its user's model is asked for the second line. */
    const givingUp = () => {
      let giveUp = (): void => {};
      const caught: string[] = [];
      const environment: Environment = {
        ...repeatableLamp,
        async open(task, options) {
          const { user } = options;
          const reply: typeof user.reply = async (text, { signal }) => {
            const own = new AbortController();
            giveUp = () => own.abort(new DOMException("It is late", "TimeoutError"));
            try {
              return await user.reply(text, { signal: AbortSignal.any([signal, own.signal]) });
            } catch (thrown) {
              caught.push(tellsThrown(thrown));
              if ((thrown as Error).name !== "TimeoutError") throw thrown;
              return silence;
            }
          };
          return await repeatableLamp.open(task, { ...options, user: { ...user, reply } });
        },
      };
      let askedCount = 0;
      const user = llmUser({
        model: {
          name: "clerk",
          complete: async (_request, { signal }) => {
            askedCount += 1;
            if (askedCount === 2) {
              giveUp();
              signal.throwIfAborted();
            }
            const text = askedCount === 1 ? "Lamp on, please." : "###STOP###";
            const usage = {
              inputTokenCount: 1,
              outputTokenCount: 1,
              finishReason: "stop",
            } as const;
            return { text, ...usage };
          },
        },
      });
      return { environment, user, caught };
    };

    test("the world gets the same error in a replay", async () => {
      const live = givingUp();
      const { episode, recorded, batches } = await play(live);
      expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
      expect(live.caught).toEqual(["TimeoutError: It is late"]);
      const { caught, environment } = givingUp();
      const past = stored(recorded);
      const again = await play({ ...nothing, environment }, { past, atEnd: "replay" });
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
      expect(caught).toEqual(live.caught);
      const { user, asked } = countingUser();
      asked.count = 2;
      const resumed = await play(
        { environment, user, engine: preparedEngine(replies.slice(2)) },
        { past: stored(joined(batches.slice(0, 2))) },
      );
      expect(resumed.episode).toMatchObject({ outcome: "completed", reward: 1 });
    });

    test("the same holds for a user with recorded lines", async () => {
      const live = givingUp();
      const { repeatable: _not, ...user } = live.user;
      const { episode, recorded } = await play({ environment: live.environment, user });
      const { caught, environment } = givingUp();
      const again = await play(
        { ...nothing, environment, user },
        { past: stored(recorded), atEnd: "replay" },
      );
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
      expect(caught).toEqual(["TimeoutError: It is late"]);
    });

    test("without a note of the cancellation in the recording, the user fails", async () => {
      const { recorded } = await play(givingUp());
      const inputs = recorded.inputs.map((input) => {
        if (input.type !== "outside") return input;
        const { isGivenUp: _absent, ...before } = input;
        return before;
      });
      const { caught, environment } = givingUp();
      const past = stored({ ...recorded, inputs });
      const again = play({ ...nothing, environment }, { past, atEnd: "replay" });
      await expect(again).rejects.toThrow(
        "the episode fails where it continued (user/exception): Cannot hear the user's reply in task lamp/test/0: It is late",
      );
      expect(caught).toEqual([expect.stringMatching(/^RolloutError: /)]);
    });
  });

  test("concurrent calls of the environment are found again in any order", async () => {
    const calls: string[] = [];
    const environment: Environment = {
      ...repeatableLamp,
      async open(task, options) {
        const world = await repeatableLamp.open(task, options);
        return {
          ...world,
          tools: repeatableLamp.tools,
          [Symbol.asyncDispose]: async () => {},
          begin: (call) => world.begin(call),
          score: (call) => world.score(call),
          userUsage: () => world.userUsage(),
          step: async (action, call) => {
            const step = await world.step(action, call);
            const { outside } = options;
            const [slow, fast] = await Promise.all(
              ["slow", "fast"].map((name) =>
                outside!(name, async () => {
                  calls.push(name);
                  if (name === "slow") for (let tick = 0; tick < 9; tick++) await Promise.resolve();
                  return `${name} ${calls.length}`;
                }),
              ),
            );
            return { ...step, observation: `${step.observation} (${slow}, ${fast})` };
          },
        };
      },
    };
    const { episode, recorded } = await play({ environment });
    expect(episode.turns[1]?.steps[0]?.observation).toBe("on (slow 4, fast 4)");
    const before = calls.length;
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    expect(calls).toHaveLength(before);
  });

  /** A call that returns its place, and the calls that follow from it. */
  interface Call {
    readonly ownTicks: number;
    readonly isCaught: boolean;
    readonly latency: { readonly rounds: number; readonly ticks: number };
    readonly next: readonly Call[];
  }

  function drawCall(random: Random, depth = 0): Call {
    const count = depth === 3 ? 0 : random.between(depth === 0 ? 2 : 0, 3);
    return {
      ownTicks: random.between(0, 6),
      isCaught: random.chance(0.2),
      latency: { rounds: random.pick([0, 0, 1, 2, 5]), ticks: random.between(0, 6) },
      next: Array.from({ length: count }, () => drawCall(random, depth + 1)),
    };
  }

  const ticks = async (count: number): Promise<void> => {
    for (let tick = 0; tick < count; tick++) await Promise.resolve();
  };

  const rounds = async (count: number): Promise<void> => {
    for (let round = 0; round < count; round++) {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    }
  };

  async function callAll(
    outside: Outside,
    call: Call,
    { at, named }: { readonly at: string; readonly named: boolean },
  ): Promise<string> {
    await ticks(call.ownTicks);
    const what = named ? `call ${at}` : "call";
    const brought = await outside(what, async () => {
      await rounds(call.latency.rounds);
      await ticks(call.latency.ticks);
      if (call.isCaught) throw new Error(`no ${at}`);
      return at;
    }).catch((error: unknown) => (error as Error).message);
    const next = call.next.map(
      async (child, index) => await callAll(outside, child, { at: `${at}${index}`, named }),
    );
    return [brought, ...(await Promise.all(next))].join(" ");
  }

  const ofEarlierVersion = ({ inputs, times }: Inputs): Inputs =>
    stored({
      times,
      inputs: inputs.map((input) => {
        if (input.type !== "outside") return input;
        const { begun: _, ...earlier } = input;
        return earlier;
      }),
    });

  function lampThatCalls(show: (outside: Outside) => Promise<string>): Environment {
    return {
      ...repeatableLamp,
      async open(task, options) {
        const world = await repeatableLamp.open(task, options);
        const step = world.step.bind(world);
        world.step = async (action, call) => {
          const stepped = await step(action, call);
          if (action.type === "say") return stepped;
          return { ...stepped, observation: await show(options.outside!) };
        };
        world.score = async () => {
          const text = await show(options.outside!);
          return { reward: 1, details: { text } };
        };
        return world;
      },
    };
  }

  test.each(Array.from({ length: 40 }, (_, seed) => seed))(
    "concurrent chains of calls are found again in any order: seed %i",
    async (seed) => {
      const tree = drawCall(createSeededRandom(`calls ${seed}`));
      const environment = lampThatCalls(
        async (outside) => await callAll(outside, tree, { at: "0", named: seed % 2 === 0 }),
      );
      const { episode, recorded, batches } = await play({ environment });
      expect(episode.outcome).toBe("completed");
      for (const past of [stored(recorded), ofEarlierVersion(recorded)]) {
        for (const scoreAnew of [false, true]) {
          const options = { past, atEnd: "replay", scoreAnew } as const;
          const again = await play({ ...nothing, environment }, options);
          expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
        }
      }
      const { user, asked } = countingUser();
      asked.count = 2;
      const { episode: second } = await play(
        { environment, user, engine: preparedEngine([]) },
        { past: stored(joined(batches.slice(0, 3))), start: 2 },
      );
      expect(second.messages).toEqual(episode.messages);
    },
  );

  test("a result waits for the calls that started before it, even if they start late", async () => {
    let isLive = true;
    const environment = lampThatCalls(async (outside) => {
      const chain = async (name: string, liveRounds: number, ownRounds: number) => {
        await outside("find", async () => await rounds(liveRounds));
        // Reads a file, say.
        await rounds(isLive ? 1 : ownRounds);
        return await outside("look", async () => name);
      };
      return (await Promise.all([chain("near", 2, 30), chain("far", 20, 0)])).join(", ");
    });
    const { episode, recorded } = await play({ environment });
    expect(episode.turns[1]?.steps[0]?.observation).toBe("near, far");
    isLive = false;
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  test("calls with different names are found again, regardless of their duration", async () => {
    let isLive = true;
    const environment = lampThatCalls(async (outside) => {
      const seen: string[] = [];
      const chain = async (name: string, liveRounds: number, [before, between]: number[]) => {
        await rounds(isLive ? 0 : before!);
        await outside(`find ${name}`, async () => await rounds(liveRounds));
        await rounds(isLive ? liveRounds : between!);
        seen.push(await outside(`look ${name}`, async () => name));
      };
      // The call that started last is the first to start in the replay.
      const played = [
        [30, 1],
        [10, 10],
        [0, 30],
      ];
      await Promise.all(
        ["far", "near", "here"].map(
          async (name, index) => await chain(name, [40, 20, 2][index]!, played[index]!),
        ),
      );
      return seen.join(", ");
    });
    const { episode, recorded, batches } = await play({ environment });
    expect(episode.turns[1]?.steps[0]?.observation).toBe("here, near, far");
    isLive = false;
    for (const past of [stored(recorded), ofEarlierVersion(recorded)]) {
      const again = await play({ ...nothing, environment }, { past, atEnd: "replay" });
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    }
    const { user, asked } = countingUser();
    asked.count = 2;
    const resumed = await play(
      { environment, user, engine: preparedEngine([]) },
      { past: stored(joined(batches.slice(0, 3))), start: 2 },
    );
    expect(resumed.episode.messages).toEqual(episode.messages);
  });

  test("after a kill, an unfinished call does not take the result of another call of its name", async () => {
    const made: string[] = [];
    const environment = lampThatCalls(async (outside) => {
      const call = async (name: string, waits: number) =>
        await outside("get", async () => {
          made.push(name);
          await rounds(waits);
          return name;
        });
      return (await Promise.all([call("slow", 9), call("fast", 1)])).join(", ");
    });
    const { recorded } = await play({ environment });
    const { inputs, times } = stored(recorded);
    const place = inputs.findIndex((input) => nameOfInput(input) === "get");
    made.length = 0;
    const { user, asked } = countingUser();
    asked.count = 2;
    const { episode } = await play(
      { environment, user, engine: preparedEngine(replies.slice(2)) },
      { past: { inputs: inputs.slice(0, place + 1), times }, start: 2 },
    );
    expect(episode.turns[1]?.steps[0]?.observation).toBe("slow, fast");
    // The others are the score's.
    expect(made).toEqual(["slow", "slow", "fast"]);
  });

  /** Plays to the end, with a second at a time. */
  async function finish<Result>(
    hand: ReturnType<typeof createManualClock>,
    playing: Promise<Result>,
  ): Promise<Result> {
    const state = { isOver: false };
    const over = playing.finally(() => (state.isOver = true));
    over.catch(() => {});
    while (!state.isOver) {
      await rounds(20);
      await hand.advance(1_000);
    }
    return await over;
  }

  test.each([
    { chainLength: 3, toolTimeoutMs: 60_000 },
    { chainLength: 10, toolTimeoutMs: 60_000 },
    { chainLength: 3, toolTimeoutMs: 4_000 },
  ])(
    "a missing call beside chains of $chainLength is reported within $toolTimeoutMs ms",
    async ({ chainLength, toolTimeoutMs }) => {
      const calling = (hasLong: boolean): Environment =>
        lampThatCalls(async (outside) => {
          const long = hasLong ? outside("long", async () => await rounds(400)) : undefined;
          const chain = async (name: string) => {
            for (let part = 0; part < chainLength; part++) {
              await outside(`part ${part} of ${name}`, async () => await rounds(2));
            }
          };
          await Promise.all([chain("near"), chain("far")]);
          await long;
          return "done";
        });
      const { recorded } = await play({ environment: calling(true) });
      const hand = createManualClock();
      const again = play(
        {
          ...nothing,
          environment: calling(false),
          clock: createClock(hand),
          limits: { ...defaultLimits, toolTimeoutMs },
        },
        { past: stored(recorded), atEnd: "replay" },
      );
      await expect(finish(hand, again)).rejects.toThrow(ReplayDivergence);
    },
  );

  test.each([3_000, 7_000, 20_000])(
    "the last call waits for the calls that ran with it, after %i ms of own work",
    async (ownMs) => {
      let isLive = true;
      const hand = createManualClock();
      const clock = createClock(hand);
      const environment = lampThatCalls(async (outside) => {
        const seen: string[] = [];
        const chain = async (name: string, waitMs: number, callMs: number) => {
          if (waitMs > 0) await clock.sleep(waitMs);
          await outside(`look ${name}`, async () => await clock.sleep(callMs));
          seen.push(name);
        };
        await Promise.all([
          chain("first", isLive ? 0 : ownMs, 2_000),
          chain("second", isLive ? 1_000 : 0, 3_000),
        ]);
        return seen.join(", ");
      });
      const { episode, recorded } = await finish(hand, play({ environment, clock }));
      expect(episode.turns[1]?.steps[0]?.observation).toBe("first, second");
      isLive = false;
      const again = await finish(
        hand,
        play({ ...nothing, environment, clock }, { past: stored(recorded), atEnd: "replay" }),
      );
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    },
  );

  test("a result waits for earlier calls for at most half of the answer's time limit", async () => {
    const hand = createManualClock();
    const clock = createClock(hand);
    const environment = lampThatCalls(async (outside) => {
      const chain = async (name: string, liveMs: number, ownMs: number) => {
        await outside("find", async () => await clock.sleep(liveMs));
        if (ownMs > 0) await clock.sleep(ownMs);
        return await outside("look", () => name);
      };
      return (await Promise.all([chain("near", 0, 20_000), chain("far", 25_000, 0)])).join(", ");
    });
    const finish = async (playing: ReturnType<typeof play>) => {
      const state = { isOver: false };
      const over = playing.finally(() => (state.isOver = true));
      over.catch(() => {});
      while (!state.isOver) {
        await rounds(20);
        await hand.advance(5_000);
      }
      return await over;
    };
    const { episode, recorded } = await finish(play({ environment, clock }));
    expect(episode.turns[1]?.steps[0]?.observation).toBe("near, far");
    const again = await finish(
      play({ ...nothing, environment, clock }, { past: stored(recorded), atEnd: "replay" }),
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  test("a missing call is reported before the time limit of its answer", async () => {
    const calling = (names: readonly string[]): Environment =>
      lampThatCalls(async (outside) => {
        for (const name of names) await outside(name, () => name);
        return "done";
      });
    const { recorded } = await play({ environment: calling(["first", "second", "third"]) });
    for (const [toolTimeoutMs, waitMs] of [
      [defaultLimits.toolTimeoutMs, 5_000],
      [3_000, 1_500],
    ] as const) {
      const hand = createManualClock();
      const again = play(
        {
          environment: calling(["second", "third"]),
          clock: createClock(hand),
          limits: { ...defaultLimits, toolTimeoutMs },
        },
        { past: stored(recorded) },
      );
      void hand.untilSleeping(waitMs).then(async () => await hand.advance(waitMs));
      await expect(again).rejects.toThrow(
        new ReplayDivergence("environment", "step switch no longer calls first"),
      );
      // It is waited for once.
      expect(hand.sleeps.filter((ms) => ms === waitMs)).toEqual([waitMs]);
    }
  });

  test.each([true, false])("reports the missing call: starts at once %s", async (atOnce) => {
    const pair = (names: readonly string[]): Environment =>
      lampThatCalls(async (outside) => {
        const call = async (name: string) => {
          if (!atOnce && name === "fast") await outside("first", () => 1);
          return await outside(name, async () => await rounds(name === "slow" ? 9 : 1));
        };
        await Promise.all(names.map(call));
        return "done";
      });
    const { recorded } = await play({ environment: pair(["slow", "fast"]) });
    const hand = createManualClock();
    const again = play(
      { ...nothing, environment: pair(["slow"]), clock: createClock(hand) },
      { past: stored(recorded), atEnd: "replay" },
    );
    void hand.untilSleeping(30_000).then(async () => await hand.advance(30_000));
    await expect(again).rejects.toThrow(ReplayDivergence);
    const missing = atOnce ? "fast" : "first";
    await expect(again).rejects.toThrow(`step switch no longer calls ${missing}`);
  });

  test.each([true, false])(
    "two lines that are requested at once are played again (repeatable user: %s)",
    async (repeatable) => {
      const environment: Environment = {
        ...repeatableLamp,
        async open(task, options) {
          const world = await repeatableLamp.open(task, options);
          const step = world.step.bind(world);
          world.step = async (action, call) => {
            const stepped = await step(action, call);
            if (action.type === "say") return stepped;
            const names = ["first", "last"].map(
              async (name) => await options.user.reply(name, call),
            );
            const lines = (await Promise.all(names)).map((line) =>
              typeof line === "string" ? line : line.text,
            );
            return { ...stepped, observation: lines.join(" ") };
          };
          return world;
        },
      };
      const { user: base } = countingUser();
      const user: User = {
        ...base,
        repeatable,
        open(task, options) {
          const session = base.open(task, options);
          const { outside } = options;
          session.reply = async (text) => {
            const found = await outside!(`look up ${text}`, async () => {
              await rounds(text === "last" ? 20 : 1);
              return text;
            });
            return await outside!(`word ${text}`, () => `my ${found}`);
          };
          return session;
        },
      };
      const { episode, recorded } = await play({ environment, user });
      expect(episode.turns[1]?.steps[0]?.observation).toBe("my first my last");
      const again = await play(
        { ...nothing, environment, user },
        { past: stored(recorded), atEnd: "replay" },
      );
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    },
  );

  test.each(["open", "begin"])(
    "an episode that failed because %s answered before its call is replayed",
    async (place) => {
      const environment: Environment = {
        ...repeatableLamp,
        async open(task, options) {
          const callEarly = (): void => {
            void options.outside!("early", async () => await rounds(20)).catch(() => {});
          };
          if (place === "open") callEarly();
          const world = await repeatableLamp.open(task, options);
          const begin = world.begin.bind(world);
          world.begin = async (call) => {
            if (place === "begin") callEarly();
            return await begin(call);
          };
          world[Symbol.asyncDispose] = async () => {
            await options.outside!("close", () => 1);
          };
          return world;
        },
      };
      const { episode, recorded } = await play({ environment });
      expect(episode.failure?.code).toBe("environment/outside-not-awaited");
      const answers = recorded.inputs.filter(({ type }) => type === "answer");
      expect(answers.at(-2)).toMatchObject({ what: place });
      const again = await play(
        { ...nothing, environment },
        { past: stored(recorded), atEnd: "replay" },
      );
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    },
  );

  test("a missing call is reported even if the tool's own time limit ends first", async () => {
    const hand = createManualClock();
    const clock = createClock(hand);
    const calling = (names: readonly string[]): Environment =>
      lampThatCalls(async (outside) => {
        const late = async (): Promise<never> => {
          await clock.sleep(1_000);
          throw new RolloutError("environment/timeout", "Tool switch took longer than 1000 ms");
        };
        const calls = names.map(async (name) => {
          return await outside(name, async () => await rounds(name === "first" ? 9 : 1));
        });
        await Promise.race([Promise.all(calls), late()]);
        return "done";
      });
    const { recorded } = await play({ environment: calling(["second", "first"]), clock });
    const again = play(
      { environment: calling(["second"]), clock },
      { past: stored(recorded), atEnd: "live" },
    );
    await expect(finish(hand, again)).rejects.toThrow(
      new ReplayDivergence("environment", "step switch no longer calls first"),
    );
  });

  test("a new score waits five seconds for missing calls", async () => {
    const judgedBy = (judges: readonly string[]): Environment => {
      const base = lamp();
      return {
        ...base,
        repeatable: true,
        async open(task, options) {
          const world = await base.open(task, options);
          world.score = async () => {
            const ask = async (name: string) => await options.outside!(`judge ${name}`, () => 1);
            return { reward: 1, details: { votes: await Promise.all(judges.map(ask)) } };
          };
          return world;
        },
      };
    };
    const { recorded } = await play({ environment: judgedBy(["ann", "bo", "cy"]) });
    const hand = createManualClock();
    const again = play(
      { ...nothing, environment: judgedBy(["ann", "cy"]), clock: createClock(hand) },
      { past: stored(recorded), atEnd: "replay", scoreAnew: true },
    );
    void hand.untilSleeping(5_000).then(async () => await hand.advance(5_000));
    expect((await again).episode.rewardDetails).toEqual({ votes: [1, 1] });
    expect(hand.sleeps.filter((ms) => ms === 5_000)).toHaveLength(1);
  });

  test("a call that fails early in a replay causes no unhandled rejection", async () => {
    const environment = lampThatCalls(async (outside) => {
      const weather = outside("weather", async () => {
        await rounds(50);
        throw new Error("the service is down");
      });
      await rounds(10);
      return await weather.catch((error: unknown) => (error as Error).message);
    });
    const { episode, recorded } = await play({ environment });
    expect(episode.turns[1]?.steps[0]?.observation).toBe("the service is down");
    const unhandled: unknown[] = [];
    const note = (reason: unknown): void => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    try {
      const again = await play(
        { ...nothing, environment },
        { past: stored(recorded), atEnd: "replay" },
      );
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    } finally {
      process.off("unhandledRejection", note);
    }
    expect(unhandled).toEqual([]);
  });

  test("refuses a call within the work of another call", async () => {
    const environment = lampThatCalls(
      async (outside) =>
        await outside("weather", async () => `${await outside("find Oslo", () => 59)}: snow`),
    );
    const { episode } = await play({ environment });
    expect(episode.failure).toEqual({
      party: "environment",
      code: "environment/exception",
      message:
        "Cannot call tool switch in task lamp/test/0: Cannot call find Oslo through outside within the " +
        "work of weather, which is recorded with what it brings, expected it to be called as it is, or before",
    });
  });

  describe("of a call that is made between two calls to the world", () => {
    /** Fires a timer while the policy samples its second turn. */
    const samplingOn = (ring: () => void): Engine => {
      const prepared = preparedEngine(replies);
      return {
        ...prepared,
        async generate(request, options) {
          if (prepared.requests.length === 1) ring();
          return await prepared.generate(request, options);
        },
      };
    };
    const why = (what: string) =>
      `${what} was called through outside when step say had been answered, expected it to be called before, ` +
      `and awaited (await outside("${what}", …))`;

    test("it is refused, and fails the episode as the world's failure, also in a replay", async () => {
      const calls: string[] = [];
      const thrown: unknown[] = [];
      let ring = (): void => {};
      const environment: Environment = {
        ...repeatableLamp,
        async open(task, options) {
          ring = () => {
            const ping = options.outside!("ping", () => void calls.push("ping"));
            void ping.catch((error: unknown) => thrown.push(error));
            // No caller waits for this one.
            void options.outside!("pong", () => void calls.push("pong"));
          };
          return await repeatableLamp.open(task, options);
        },
      };
      const engine = samplingOn(() => ring());
      const { episode, recorded } = await play({ environment, engine });
      expect(episode).toMatchObject({
        outcome: "failed",
        failure: {
          party: "environment",
          code: "environment/outside-not-awaited",
          message: `Cannot continue with step switch: ${why("ping")}, or the episode could not be played again`,
        },
      });
      expect(thrown).toEqual([new OutsideMisuse(`Cannot call what is outside: ${why("ping")}`)]);
      expect(calls).toEqual([]);
      expect(recorded.inputs.map(nameOfInput)).not.toContain("ping");
      const again = await play(
        { ...nothing, environment },
        { past: stored(recorded), atEnd: "replay" },
      );
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    });

    test.each([true, false])(
      "it is the user's failure if the user made it: repeatable %s",
      async (repeatable) => {
        const { user: inner } = countingUser();
        let ring = (): void => {};
        const user: User = {
          ...inner,
          repeatable,
          open(task, options) {
            ring = () => void options.outside!("remember", () => 1);
            return inner.open(task, options);
          },
        };
        const { episode } = await play({ user, engine: samplingOn(() => ring()) });
        expect(episode.failure).toEqual({
          party: "user",
          code: "user/outside-not-awaited",
          message: `Cannot continue with step switch: ${why("remember")}, or the episode could not be played again`,
        });
      },
    );

    test("it is the world's failure if the world asked the user", async () => {
      let ring = (): void => {};
      const environment: Environment = {
        ...repeatableLamp,
        async open(task, options) {
          const { signal } = new AbortController();
          ring = () => void options.user.reply("Are you there?", { signal }).catch(() => {});
          return await repeatableLamp.open(task, options);
        },
      };
      const { episode } = await play({ environment, engine: samplingOn(() => ring()) });
      expect(episode.failure).toEqual({
        party: "environment",
        code: "environment/outside-not-awaited",
        message: `Cannot continue with step switch: ${why("chat clerk")}, or the episode could not be played again`,
      });
    });

    test("a recorded call at that place is the environment's divergence", async () => {
      const { recorded } = await play({});
      const past = stored(recorded);
      const turns = past.inputs.flatMap(({ type }, place) =>
        type === "generation" ? [place] : [],
      );
      const index = past.inputs.slice(0, turns[1]).filter(({ type }) => type === "outside").length;
      const ping: Input = { type: "outside", index, what: "ping", outcome: { value: 1 } };
      const inputs = past.inputs.toSpliced(turns[1]!, 0, ping);
      const again = play({ ...nothing }, { past: { ...past, inputs }, atEnd: "replay" });
      await expect(again).rejects.toMatchObject({
        name: "ReplayDivergence",
        party: "environment",
        message: "the episode reaches a policy call where it reached ping",
      });
    });
  });

  test("calls through outside during disposal are recorded and replayed", async () => {
    const cleared: string[] = [];
    const environment: Environment = {
      ...repeatableLamp,
      async open(task, options) {
        const world = await repeatableLamp.open(task, options);
        world[Symbol.asyncDispose] = async () => {
          await options.outside!("clear", () => void cleared.push("cleared"));
        };
        return world;
      },
    };
    const { episode, recorded } = await play({ environment });
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
    expect(recorded.inputs.map(nameOfInput).slice(-3)).toEqual(["score", "clear", "usage"]);
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    expect(cleared).toEqual(["cleared"]);
  });

  test("a world with another or unfinished disposal does not end the playback", async () => {
    const hand = createManualClock();
    const limits = { ...defaultLimits, toolTimeoutMs: 1234 };
    const clearing = (what: string, work: () => Promise<unknown>): Environment => ({
      ...repeatableLamp,
      async open(task, options) {
        const world = await repeatableLamp.open(task, options);
        world[Symbol.asyncDispose] = async () => void (await options.outside!(what, work));
        return world;
      },
    });
    const hanging = clearing("clear", async () => {
      await hand.advance(limits.toolTimeoutMs);
      await new Promise(() => {});
    });
    const first = await play({ environment: hanging, limits, clock: createClock(hand) });
    expect(first.episode).toMatchObject({ outcome: "completed", reward: 1 });
    expect(first.recorded.inputs.map(nameOfInput).slice(-2)).toEqual(["score", "usage"]);
    const sound = await play({ environment: clearing("clear", async () => 1) });
    for (const { episode, recorded } of [first, sound]) {
      for (const atEnd of ["replay", "live"] as const) {
        const environment = clearing("clean", async () => 1);
        const past = stored(recorded);
        const again = await play({ ...nothing, environment }, { past, atEnd });
        expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
      }
    }
  });

  describe("of a world that makes calls through outside during disposal", () => {
    interface Behaviour {
      /** The work in the tool, or before the score. */
      readonly work: (outside: Outside) => Promise<unknown>;
      readonly in: "step" | "score";
      /** The work between the two calls during disposal. Default: none. */
      readonly between?: () => Promise<void>;
    }

    function clearing({ work, in: part, between = async () => {} }: Behaviour): Environment {
      return {
        ...repeatableLamp,
        async open(task, options) {
          const world = await repeatableLamp.open(task, options);
          const outside = options.outside!;
          await outside("create", () => "box 1");
          const step = world.step.bind(world);
          world.step = async (action, call) => {
            const stepped = await step(action, call);
            if (action.type === "call" && part === "step") await work(outside);
            return stepped;
          };
          const score = world.score.bind(world);
          world.score = async (how) => {
            if (part === "score") await work(outside);
            return await score(how);
          };
          world[Symbol.asyncDispose] = async () => {
            await outside("stop", () => "stopped");
            await between();
            await outside("delete", () => "gone");
          };
          return world;
        },
      };
    }

    const namesAfter = ({ inputs }: Inputs, name: string): readonly string[] => {
      const names = inputs.map(nameOfInput);
      return names.slice(names.lastIndexOf(name));
    };

    /** Replays to the byte, and continues in the same way after a kill during disposal. */
    async function requireSound(
      environment: Environment,
      { episode, recorded }: { readonly episode: Episode; readonly recorded: Inputs },
    ): Promise<void> {
      const past = stored(recorded);
      const hand = createManualClock();
      const clock = createClock(hand);
      const again = await play({ ...nothing, environment, clock }, { past, atEnd: "replay" });
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
      expect(hand.sleeps).not.toContain(5_000);
      expect(hand.sleeps).not.toContain(30_000);
      for (const name of ["stop", "delete"]) {
        const place = past.inputs.findIndex((input) => nameOfInput(input) === name);
        const { user, asked } = countingUser();
        asked.count = 2;
        const resumed = await play(
          { environment, user, engine: preparedEngine([]), clock },
          { past: { ...past, inputs: past.inputs.slice(0, place) }, start: 2 },
        );
        expect(resumed.episode.failure).toEqual(episode.failure);
        const ahead = past.inputs.slice(place).filter((input) => nameOfInput(input) !== "run");
        // The call without an end is pending only in the original play.
        const known = ahead.map((input) => {
          const { begun: _, ...ended } = input as Extract<Input, { type: "answer" }>;
          return ended;
        });
        expect(resumed.recorded.inputs).toEqual(known);
      }
    }

    test.each([
      ["step", "environment/exception", "step switch"],
      ["score", "grader/exception", "score"],
    ] as const)("if a call of %s fails after others", async (part, code, name) => {
      const environment = clearing({
        in: part,
        work: async (outside) => {
          await outside("look", () => 1);
          await outside("run", () => 500);
          throw new Error("the service says 500");
        },
      });
      const played = await play({ environment });
      expect(played.episode.failure?.code).toBe(code);
      expect(namesAfter(played.recorded, "look")).toEqual([
        "look",
        "run",
        name,
        "stop",
        "delete",
        "usage",
      ]);
      // The recorded calls say how many there were.
      expect(played.recorded.inputs.filter((input) => "begun" in input)).toEqual([]);
      await requireSound(environment, played);
    });

    /** A tool with a call that ends on request, and with a shorter time limit. */
    const late = (between?: () => Promise<void>) => {
      const hand = createManualClock();
      const limits = { ...defaultLimits, toolTimeoutMs: 1234 };
      const call = { end: (): void => {} };
      const environment = clearing({
        in: "step",
        work: async (outside) => {
          await outside("look", () => 1);
          await outside("run", async () => {
            const ended = new Promise<void>((resolve) => (call.end = resolve));
            await hand.advance(limits.toolTimeoutMs);
            await ended;
          });
        },
        ...(between && { between }),
      });
      return { environment, limits, call, clock: createClock(hand) };
    };

    test("if a call never ends", async () => {
      const { environment, limits, clock } = late();
      const played = await play({ environment, limits, clock });
      expect(played.episode.failure?.code).toBe("environment/timeout");
      expect(namesAfter(played.recorded, "look")).toEqual([
        "look",
        "step switch",
        "stop",
        "delete",
        "usage",
      ]);
      const [end] = played.recorded.inputs.filter((input) => nameOfInput(input) === "step switch");
      const begun = played.recorded.inputs.find((input) => nameOfInput(input) === "stop");
      expect(end).toMatchObject({ type: "answer", begun: (begun as { index: number }).index });
      await requireSound(environment, played);
    });

    test("if a call ends during the score", async () => {
      const { environment, limits, clock, call } = late(async () => {
        call.end();
        await rounds(9);
      });
      const played = await play({ environment, limits, clock });
      expect(namesAfter(played.recorded, "look")).toEqual([
        "look",
        "step switch",
        "stop",
        "run",
        "delete",
        "usage",
      ]);
      await requireSound(environment, played);
      // It might as well have ended before.
      const { inputs, times } = played.recorded;
      const place = inputs.findIndex((input) => nameOfInput(input) === "run");
      const earlier = inputs.toSpliced(place, 1).toSpliced(place - 1, 0, inputs[place]!);
      await requireSound(environment, { ...played, recorded: { inputs: earlier, times } });
    });

    test("if the new score makes fewer calls", async () => {
      const asks = (outside: Outside) => outside("ask the judge", () => 1);
      const before = clearing({ in: "score", work: asks });
      const { episode, recorded } = await play({ environment: before });
      expect(namesAfter(recorded, "ask the judge")).toEqual([
        "ask the judge",
        "score",
        "stop",
        "delete",
        "usage",
      ]);
      const environment = clearing({ in: "score", work: async () => {} });
      const again = await play(
        { ...nothing, environment },
        { past: stored(recorded), atEnd: "replay", scoreAnew: true },
      );
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    });
  });

  test("a call that ends at once is recorded even if it is not awaited", async () => {
    const environment = lampThatCalls(async (outside) => {
      void outside("count", () => 1);
      return "done";
    });
    const { episode, recorded } = await play({ environment });
    expect(episode.outcome).toBe("completed");
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  test.each<[what: string, thrown: unknown, message: string]>([
    ["an error with a number as message", Object.assign(new Error(), { message: 1n }), "1"],
    ["an object without a text", Object.create(null), "an object without a text"],
    [
      "an error that cannot be read",
      new Proxy(new Error("no"), {
        getPrototypeOf: () => {
          throw new TypeError("no");
        },
      }),
      "an object without a text",
    ],
    [
      "a failure that cannot be written",
      new RolloutError("environment/full", "no room", { discarded: [1n] as never }),
      "no room",
    ],
    ["a failure without a party", new RolloutError(7 as never, "no room"), "no room"],
  ])("records that a call of the environment's threw %s", async (_, thrown, message) => {
    let callCount = 0;
    const environment: Environment = {
      ...repeatableLamp,
      async open(task, options) {
        try {
          await options.outside!("probe", () => {
            callCount += 1;
            // eslint-disable-next-line typescript/only-throw-error
            throw thrown;
          });
        } catch {
          // It does without.
        }
        return await repeatableLamp.open(task, options);
      },
    };
    const { episode, recorded } = await play(
      { environment },
      { redactor: new Redactor(["s3cr3t-key"]) },
    );
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
    expect(stored(recorded).inputs.find(({ type }) => type === "outside")).toMatchObject({
      outcome: { error: { message } },
    });
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    expect(callCount).toBe(1);
  });

  test("records a result even if the caller changes it later", async () => {
    const environment: Environment = {
      ...repeatableLamp,
      async open(task, options) {
        const state = await options.outside!("load", () => ({ lines: ["one"] }));
        const world = await repeatableLamp.open(task, options);
        const firstLine = state.lines.shift() ?? "nothing";
        const begin = world.begin.bind(world);
        world.begin = async (call) => `${await begin(call)} (${firstLine})`;
        return world;
      },
    };
    const { episode, recorded } = await play({ environment });
    expect(recorded.inputs[0]).toMatchObject({ outcome: { value: { lines: ["one"] } } });
    // From the same inputs, twice.
    for (let round = 0; round < 2; round++) {
      const again = await play({ ...nothing, environment }, { past: recorded, atEnd: "replay" });
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    }
  });

  test("hands over a result as JSON gives it back, as a replay does", async () => {
    const brought: unknown[] = [];
    const shared = { n: 1 };
    const environment: Environment = {
      ...repeatableLamp,
      async open(task, options) {
        for (const given of [
          { at: new Date(0), seen: new Map([["a", 1]]), left: Infinity, none: undefined },
          [1, undefined],
          () => 1,
          undefined,
          { plain: [null, "text", 0.5] },
          { id: 17, error: undefined },
          "order 17".match(/order (?<id>\d+)/),
          { zero: -0, holes: Array<number>(1) },
          -0,
          { one: shared, two: shared },
        ]) {
          brought.push(await options.outside!("load", () => given));
        }
        return await repeatableLamp.open(task, options);
      },
    };
    const { recorded } = await play({ environment });
    const first = brought.splice(0);
    expect(first).toStrictEqual([
      { at: "1970-01-01T00:00:00.000Z", seen: {}, left: null },
      [1, null],
      undefined,
      undefined,
      { plain: [null, "text", 0.5] },
      { id: 17 },
      ["order 17", "17"],
      { zero: 0, holes: [null] },
      0,
      { one: { n: 1 }, two: { n: 1 } },
    ]);
    const { one, two } = first.at(-1) as Record<"one" | "two", unknown>;
    expect([one === two, one === shared]).toEqual([false, false]);
    expect(Object.keys(first[6] as string[])).toEqual(["0", "1"]);
    await play({ ...nothing, environment }, { past: stored(recorded), atEnd: "replay" });
    expect(brought).toStrictEqual(first);
  });

  test("records each answer of a world that returns the same object each time", async () => {
    let count = 0;
    const step: { observation: string; from: "tool"; source: string } = {
      observation: "",
      from: "tool",
      source: "switch",
    };
    const environment = lamp((action) => {
      if (action.type === "say") return undefined;
      count += 1;
      step.observation = `on ${count}`;
      return step;
    });
    const engine = preparedEngine([
      { outputIds: characterIds(`${switchCall}\n${switchCall}`) },
      { outputIds: characterIds("Goodbye!") },
      { outputIds: characterIds("Goodbye!") },
    ]);
    const { episode, recorded } = await play({ environment, engine });
    expect(episode.turns[0]?.steps.map(({ observation }) => observation)).toEqual(["on 1", "on 2"]);
    const again = await play(
      { ...nothing, environment },
      { past: stored(recorded), atEnd: "replay" },
    );
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  test.each([true, false])(
    "fails a tool that does not await a call through outside: %s",
    async (repeatable) => {
      let answer = (): void => {};
      const environment: Environment = {
        ...repeatableLamp,
        repeatable,
        async open(task, options) {
          const world = await repeatableLamp.open(task, options);
          const step = world.step.bind(world);
          world.step = async (action, call) => {
            if (action.type !== "call") return await step(action, call);
            void options.outside!("log", async () => {
              await new Promise<void>((resolve) => (answer = resolve));
            });
            return await step(action, call);
          };
          return world;
        },
      };
      const { episode, recorded } = await play({ environment });
      answer();
      expect(episode.turns).toHaveLength(2);
      expect(episode).toMatchObject({
        outcome: "failed",
        failure: {
          party: "environment",
          code: "environment/outside-not-awaited",
          message:
            "Cannot use the answer of step switch: it came before that of log, which was called through " +
            'outside, expected it to wait (await outside("log", …)), or the episode could not be played again',
        },
      });
      const again = await play(
        { ...nothing, environment },
        { past: stored(recorded), atEnd: "replay" },
      );
      expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
    },
  );

  describe("of a fork", () => {
    const forkAt = 2;
    /** The shared inputs with their calls through outside and their answers. */
    const shared = async (): Promise<Inputs> => {
      const { batches } = await play({});
      return joined(batches.slice(0, forkAt));
    };

    test("blames a world that catches the end of the playback", async () => {
      const environment: Environment = {
        ...repeatableLamp,
        async open(task, options) {
          const world = await repeatableLamp.open(task, options);
          const step = world.step.bind(world);
          world.step = async (action, call) => {
            // It was not called when this was recorded.
            await options.outside!("log", () => "noted").catch(() => {});
            return await step(action, call);
          };
          return world;
        },
      };
      const { episode } = await play(
        { ...nothing, environment, now: ticking() },
        { past: await shared(), forkAt, start: 2 },
      );
      expect(episode).toMatchObject({
        outcome: "failed",
        failure: {
          code: "environment/not-repeatable",
          message:
            "Cannot part lamp/test/0#0 from another rollout with turn 2: log is called where chat clerk was",
        },
        segments: [],
      });
    });

    test("its world makes calls through outside during disposal", async () => {
      const cleared: string[] = [];
      const environment: Environment = {
        ...repeatableLamp,
        policyText: "You break the lamp.",
        async open(task, options) {
          const world = await repeatableLamp.open(task, options);
          world[Symbol.asyncDispose] = async () => {
            await options.outside!("clear", () => void cleared.push("cleared"));
          };
          return world;
        },
      };
      const { episode } = await play(
        { ...nothing, environment, now: ticking() },
        { past: await shared(), forkAt, start: 2 },
      );
      expect(episode).toMatchObject({ failure: { code: "agent/not-repeatable" }, segments: [] });
      expect(cleared).toEqual(["cleared"]);
    });

    test.each([
      ["You switched nothing.", "the policy is asked with other ids than before"],
      // It may also count a call as a format error that was none before, and show the policy the
      // same text.
      ["One call a turn.", "the conversation ends by its format errors where it continued"],
    ])("blames an agent that meets a limit by reading otherwise: %s", async (shown, why) => {
      const about = { limits: { ...defaultLimits, maxFormatErrors: 1 } };
      const before = refusing({ status: "extra-call", observation: "One call a turn." });
      const { episode: trunk, batches } = await play({ ...about, agent: before });
      expect(trunk.turns).toHaveLength(3);
      const { episode } = await play(
        {
          ...nothing,
          ...about,
          now: ticking(),
          agent: refusing({ status: "invalid-json", observation: shown }),
        },
        { past: inputsBefore(joined(batches), forkAt)!, forkAt, start: 2 },
      );
      expect(episode).toMatchObject({
        outcome: "failed",
        failure: { party: "agent", code: "agent/not-repeatable" },
        segments: [],
      });
      expect(episode.failure?.message).toContain(
        `Cannot part lamp/test/0#0 from another rollout with turn 2: ${why}`,
      );
    });

    test.each([
      ["max-turns", { maxTurns: 1 }],
      ["max-turns", { maxTurns: forkAt }],
      ["max-tokens", { maxEpisodeTokens: 5 }],
    ])("does not end before its own turn by a smaller limit: %s", async (stopReason, limits) => {
      const past = await shared();
      const forked = play(
        { ...nothing, now: ticking(), limits: { ...defaultLimits, ...limits } },
        { past, forkAt, start: 2 },
      );
      await expect(forked).rejects.toThrow(UsageError);
      await expect(forked).rejects.toThrow(
        `Cannot part lamp/test/0#0 from another rollout with turn 2: a limit ends the conversation ` +
          `before (${stopReason}), expected the limits that it was played with, or larger ones`,
      );
    });
  });

  test("hands over results of calls through outside before the policy samples", async () => {
    const handed: Inputs[] = [];
    const atAsk: Inputs[] = [];
    const inner = preparedEngine(replies);
    const engine: Engine = {
      ...inner,
      generate: async (...call) => {
        atAsk.push(stored(joined(handed)));
        return await inner.generate(...call);
      },
    };
    const { user, asked } = countingUser();
    await play({ engine, user }, { onInputs: (more) => handed.push(more) });
    const names = joined(handed).inputs.map(nameOfInput);
    const turns = names.flatMap((name, index) => (name === "generation" ? [index] : []));
    expect(turns).toHaveLength(3);
    expect(turns[2]).toBeGreaterThan(turns[1]! + 1);
    expect(atAsk.map(({ inputs }) => inputs.map(nameOfInput))).toEqual([
      names.slice(0, turns[0]),
      names.slice(0, turns[1]),
      // The lamp makes no external calls.
      names.slice(0, turns[1]! + 1),
    ]);
    expect(asked.count).toBe(3);
    asked.count = 2;
    const goingOn = { user, engine: preparedEngine(replies.slice(1)), now: ticking(500_000) };
    const { episode } = await play(goingOn, { past: atAsk[1]!, start: 2 });
    expect(asked.count).toBe(3);
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
    expect(episode.durationMs).toBeLessThan(1000);
  });

  describe("with calls through outside in each call to the user and the world", () => {
    const twice: readonly Reply[] = [
      { outputIds: characterIds(`${switchCall}\n${switchCall}`) },
      { outputIds: characterIds("Goodbye!") },
    ];

    /** Reports each call to `onCall`, and counts the calls through outside. */
    function booking(onCall: (what: string) => void = () => {}): {
      readonly playing: Playing;
      readonly done: string[];
    } {
      const done: string[] = [];
      const through = async (outside: Outside | undefined, what: string): Promise<void> => {
        onCall(what);
        await outside!(what, () => void done.push(what));
      };
      const scripted = createScriptedUser({ lines: ["Lamp on, please.", leaving] });
      const user: User = {
        ...scripted,
        repeatable: true,
        open(task, options) {
          const session = scripted.open(task, options);
          return {
            async begin(how) {
              await through(options.outside, "user begins");
              return await session.begin(how);
            },
            async reply(agentText, how) {
              await through(options.outside, "user replies");
              return await session.reply(agentText, how);
            },
            usage: () => {
              onCall("usage");
              return session.usage();
            },
          };
        },
      };
      const environment: Environment = {
        ...repeatableLamp,
        async open(task, options) {
          await through(options.outside, "create");
          const world = await repeatableLamp.open(task, options);
          const step = world.step.bind(world);
          world.step = async (action, call) => {
            if (action.type === "call") await through(options.outside, "book");
            return await step(action, call);
          };
          const score = world.score.bind(world);
          world.score = async (how) => {
            await through(options.outside, "judge");
            return await score(how);
          };
          world[Symbol.asyncDispose] = async () => await through(options.outside, "delete");
          return world;
        },
      };
      const inner = preparedEngine(twice);
      const engine: Engine = {
        ...inner,
        generate: async (...call) => {
          onCall("policy");
          return await inner.generate(...call);
        },
      };
      return { playing: { environment, user, engine }, done };
    }

    test("hands results over before the next call", async () => {
      const handed: Inputs[] = [];
      const known: (readonly [string, number])[] = [];
      const { playing, done } = booking((what) => {
        const names = joined(handed).inputs.filter(({ type }) => type === "outside");
        known.push([what, names.length]);
      });
      await play(playing, { onInputs: (more) => handed.push(more) });
      expect(known).toEqual([
        ["create", 0],
        ["user begins", 1],
        ["policy", 2],
        ["book", 2],
        ["book", 3],
        ["policy", 4],
        ["user replies", 4],
        ["judge", 5],
        ["delete", 6],
        ["usage", 7],
      ]);
      expect(done).toHaveLength(7);
    });

    test("continues after a kill at any place and repeats no work", async () => {
      const handed: Inputs[] = [];
      const { playing, done } = booking();
      const { episode } = await play(playing, { onInputs: (more) => handed.push(stored(more)) });
      const segments: unknown = JSON.parse(JSON.stringify(episode.segments));
      expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
      const whole = joined(handed);
      for (const count of handed.keys()) {
        const past = joined(handed.slice(0, count));
        const again = booking();
        const sampled = past.inputs.filter(({ type }) => type === "generation").length;
        const engine = preparedEngine(twice.slice(sampled));
        const resumed = await play({ ...again.playing, engine }, { past, start: 2 });
        const recorded = stored(joined([past, resumed.recorded]));
        expect(recorded.inputs.map(nameOfInput)).toEqual(whole.inputs.map(nameOfInput));
        const known = past.inputs.filter(({ type }) => type === "outside").map(nameOfInput);
        expect([...known, ...again.done]).toEqual(done);
        expect(resumed.episode).toMatchObject({ outcome: "completed", reward: 1 });
        expect(JSON.parse(JSON.stringify(resumed.episode.segments))).toEqual(segments);
        const replayed = await play(
          { ...booking().playing, engine: nothing.engine, now: nothing.now },
          { past: recorded, atEnd: "replay" },
        );
        expect(JSON.stringify(replayed.episode)).toBe(JSON.stringify(resumed.episode));
        const forked = await play(
          { ...booking().playing, engine: preparedEngine(twice.slice(1)) },
          { past: inputsBefore(recorded, 1)!, forkAt: 1, start: 2 },
        );
        expect(forked.episode).toMatchObject({ outcome: "completed", reward: 1 });
      }
    });

    test("repeats a call that an abort cut short, and no other", async () => {
      const handed: Inputs[] = [];
      const stop = new AbortController();
      const { playing } = booking((what) => {
        if (what === "judge") stop.abort();
      });
      const stopped = play(playing, { signal: stop.signal, onInputs: (more) => handed.push(more) });
      await expect(stopped).rejects.toThrow("This operation was aborted");
      const names = joined(handed).inputs.map(nameOfInput);
      expect(names.slice(-2)).toEqual(["user replies", "step say"]);
    });
  });

  test("hands over no extra parts if there are no calls through outside", async () => {
    const handed: Inputs[] = [];
    const user = createScriptedUser({ lines: ["Lamp on, please.", "I wait.", leaving] });
    await play({ user }, { onInputs: (more) => handed.push(more) });
    expect(handed.map(({ inputs }) => inputs.map(nameOfInput).at(-1))).toEqual([
      "generation",
      "generation",
      "generation",
      "usage",
    ]);
  });

  test("is interrupted between two turns, and repeats no answered call", async () => {
    const interrupt = new AbortController();
    const environment: Environment = {
      ...lamp((action) => void (action.type === "call" && interrupt.abort())),
      repeatable: true,
    };
    const { user, asked } = countingUser();
    const engine = preparedEngine(replies);
    const { episode, recorded } = await play(
      { environment, user, engine },
      { interrupt: interrupt.signal },
    );
    expect(episode).toMatchObject({ outcome: "aborted", stopReason: "interrupted" });
    expect(asked.count).toBe(2);
    expect(recorded.inputs.at(-1)).toMatchObject({ type: "answer", what: "step switch" });
    const now = ticking(500_000);
    const { episode: whole, recorded: more } = await play(
      { user, engine: preparedEngine(replies.slice(2)), now },
      { past: stored(recorded), start: 2 },
    );
    expect(asked.count).toBe(3);
    expect(whole).toMatchObject({ outcome: "completed", reward: 1 });
    // The time between two starts does not count as the episode's.
    expect(whole.durationMs).toBeLessThan(1000);
    const again = await play(nothing, {
      past: joined([recorded, more]),
      atEnd: "replay",
      start: 2,
    });
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(whole));
  });

  test("ids sampled before an interruption are kept if the engine takes no longer prompt", async () => {
    const { batches } = await play({});
    const [before] = batches;
    const past: Inputs = {
      inputs: before!.inputs.map((input) =>
        input.type === "generation" && "value" in input.outcome
          ? {
              ...input,
              isPartial: true,
              outcome: { value: { ...input.outcome.value, finish: { type: "length" } } },
            }
          : input,
      ),
      times: before!.times,
    };
    const full = preparedEngine([new RolloutError("engine/prompt-too-long", "Cannot sample: 400")]);
    const { user, asked } = countingUser();
    asked.count = 1;
    const { episode, recorded } = await play({ user, engine: full }, { past, start: 2 });
    expect(episode).toMatchObject({ outcome: "truncated", stopReason: "length", reward: 0 });
    expect(episode.turns.map(({ text }) => text)).toEqual(["One moment, please."]);
    expect(episode.segments[0]!.lossMask.filter((bit) => bit === 1)).toHaveLength(
      characterIds("One moment, please.").length,
    );
    const again = await play(nothing, {
      past: joined([past, recorded]),
      atEnd: "replay",
      start: 2,
    });
    expect(JSON.stringify(again.episode)).toBe(JSON.stringify(episode));
  });

  test("is interrupted within a turn, keeps the sampled ids and continues after them", async () => {
    const interrupt = new AbortController();
    const text = "Goodbye, and thank you!";
    const cutEngine: Engine = {
      ...preparedEngine([]),
      async generate(request, options) {
        interrupt.abort();
        expect(options?.cutShort?.aborted).toBe(true);
        const part: Reply = {
          outputIds: characterIds(text).slice(0, 7),
          finish: { type: "length" },
          pieces: [{ requestId: "a", tokenCount: 7, policyVersion: "1", finish: "abort" }],
        };
        return await preparedEngine([part]).generate(request, options);
      },
    };
    const user = createScriptedUser({ lines: ["Lamp?", { text: "Bye.", leaves: true }] });
    const { episode, recorded } = await play(
      { engine: cutEngine, user },
      { interrupt: interrupt.signal },
    );
    expect(episode).toMatchObject({ outcome: "aborted", stopReason: "interrupted" });
    expect(episode).not.toHaveProperty("reward");
    expect(episode.turns.map((turn) => turn.text)).toEqual(["Goodbye"]);
    const outputIds = characterIds(text).slice(7);
    const rest = preparedEngine([
      {
        outputIds,
        pieces: [
          { requestId: "b", tokenCount: outputIds.length, policyVersion: "2", finish: "stop" },
        ],
      },
    ]);
    const { episode: whole } = await play(
      { engine: rest, user },
      { past: stored(recorded), start: 2 },
    );
    expect(whole).toMatchObject({ outcome: "completed", stopReason: "user-left" });
    expect(whole.turns[0]?.text).toBe(text);
    const [request] = rest.requests;
    expect(request!.promptIds.slice(-7)).toEqual(characterIds(text).slice(0, 7));
    expect(request!.maxNewTokens).toBe(defaultLimits.maxTokensPerTurn - 7);
    const { policyVersions, lossMask } = whole.segments[0]!;
    const trained = policyVersions.filter((_, index) => lossMask[index] === 1);
    expect(trained).toEqual([...new Array<string>(7).fill("1"), ...outputIds.map(() => "2")]);
  });
});

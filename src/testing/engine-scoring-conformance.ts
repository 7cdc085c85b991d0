import assert from "node:assert/strict";
import type { Engine, GenerateRequest, ScoreRequest } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import {
  failureOf,
  type ConformanceTestApi,
  type EngineHarness,
  type EngineScenario,
  type EngineUnderTest,
} from "./engine-conformance.ts";
import { IMPOSSIBLE_LOGPROBS, foreignIds } from "./malformed-turn.ts";

/** The function that starts engines for the suite. No case may be skipped. */
export type ScoringHarness = Pick<EngineHarness, "name" | "start">;

/**
 * Registers the tests that every `Engine` with `score()` must pass besides those of
 * `registerEngineConformance()`.
 */
export function registerScoringConformance(
  harness: ScoringHarness,
  { test }: Pick<ConformanceTestApi, "test">,
): void {
  for (const [name, run] of Object.entries(CASES))
    test(`${harness.name} ${name}`, () => run(harness));
}

const STOP_ID = 2;

/** Two turns of a session. The prompt of the second has ids of the environment. */
const TURNS = [
  { outputIds: [10, 11, 11, STOP_ID], logprobs: [-0.5, -0.0625, 0, -0.1] },
  { outputIds: [20, STOP_ID], logprobs: [-1, -2] },
];
const PLAYS: EngineScenario = { kind: "plays", turns: { "session-0": TURNS } };

const SCORED: ScoreRequest = { ids: [5, 6, 7, 8], sampling: {} };

type Score = NonNullable<Engine["score"]>;

/** Starts an engine. Returns it with its `score()`, bound to the engine. */
async function start(
  { start: startEngine }: ScoringHarness,
  scenario: EngineScenario,
): Promise<EngineUnderTest & { readonly score: Score }> {
  const tested = await startEngine(scenario);
  const { engine } = tested;
  assert.ok(engine.score !== undefined, "Expected an engine that can score");
  return Object.assign(tested, { score: engine.score.bind(engine) });
}

function toRequest(promptIds: readonly number[], requestId: string): GenerateRequest {
  const sampling = {};
  const stopTokenIds = [STOP_ID];
  return { promptIds, sampling, maxNewTokens: 16, stopTokenIds, requestId, sessionId: "session-0" };
}

const CASES = {
  "scores sampled tokens with the logprobs that it reported for them, in every turn": async (
    harness: ScoringHarness,
  ) => {
    await using tested = await start(harness, PLAYS);
    const prompt = [5, 6, 7];
    const first = await tested.engine.generate(toRequest(prompt, "request-0"));
    const secondPrompt = [...prompt, ...first.outputIds, 30, 31];
    const second = await tested.engine.generate(toRequest(secondPrompt, "request-1"));
    const ids = [...secondPrompt, ...second.outputIds];
    const scores = await tested.score({ ids, from: prompt.length, sampling: { temperature: 1 } });
    assert.equal(scores.length, ids.length - prompt.length);
    assert.deepEqual(scores.slice(0, first.outputIds.length), first.logprobs);
    assert.deepEqual(scores.slice(-second.outputIds.length), second.logprobs);
  },

  "scores from index 1 by default, and returns the same scores from any start": async (
    harness: ScoringHarness,
  ) => {
    await using tested = await start(harness, PLAYS);
    const { outputIds } = await tested.engine.generate(toRequest([5], "request-0"));
    const ids = [5, ...outputIds];
    const all = await tested.score({ ids, sampling: {} });
    assert.equal(all.length, ids.length - 1);
    for (const from of ids.keys()) {
      if (from === 0) continue;
      const part = await tested.score({ ids, from, sampling: {} });
      assert.deepEqual(part, all.slice(from - 1));
    }
  },

  "returns the same scores at temperature 0 as at 1": async (harness: ScoringHarness) => {
    await using tested = await start(harness, PLAYS);
    const atOne = await tested.score({ ...SCORED, sampling: { temperature: 1 } });
    assert.deepEqual(await tested.score({ ...SCORED, sampling: { temperature: 0 } }), atOne);
  },

  "returns no scores if there is no token to score": async (harness: ScoringHarness) => {
    await using tested = await start(harness, PLAYS);
    assert.deepEqual(await tested.score({ ...SCORED, from: SCORED.ids.length }), []);
    assert.deepEqual(await tested.score({ ids: [5], sampling: {} }), []);
  },

  "sends exactly the ids, also of a long sequence": async (harness: ScoringHarness) => {
    const ids = Array.from({ length: 20_000 }, (_, index) => (index * 7_919) % 151_936);
    await using tested = await start(harness, PLAYS);
    assert.equal((await tested.score({ ids, from: 2, sampling: {} })).length, ids.length - 2);
    assert.deepEqual(tested.seenPrompts(), [ids]);
  },

  "keeps a hundred concurrent calls apart": async (harness: ScoringHarness) => {
    await using tested = await start(harness, PLAYS);
    const lengths = Array.from({ length: 100 }, (_, index) => index + 2);
    const scores = await Promise.all(
      lengths.map((length) =>
        tested.score({ ids: Array.from({ length }, () => length), sampling: {} }),
      ),
    );
    assert.deepEqual(
      scores.map((part) => part.length + 1),
      lengths,
    );
  },

  "refuses an invalid request to score with `engine/bad-request`": async (
    harness: ScoringHarness,
  ) => {
    await using tested = await start(harness, PLAYS);
    const wrong: readonly Partial<ScoreRequest>[] = [
      { ids: [] },
      { from: 0 },
      { from: 5 },
      { from: 1.5 },
      ...foreignIds(1_000).map((id) => ({ ids: [5, 6, id, 8], vocabularySize: 1_000 })),
      { sampling: { temperature: -1 } },
      { sampling: { temperature: Number.NaN } },
    ];
    for (const change of wrong) {
      assert.equal(
        (await failureOf(tested.score({ ...SCORED, ...change }))).code,
        "engine/bad-request",
      );
    }
    assert.deepEqual(tested.seenPrompts(), []);
  },

  "refuses an impossible score": async (harness: ScoringHarness) => {
    for (const logprob of IMPOSSIBLE_LOGPROBS) {
      const token = { logprob };
      const scenario = { kind: "malforms", turns: {}, token, replyCount: Infinity } as const;
      await using tested = await start(harness, scenario);
      const { code } = await failureOf(tested.score(SCORED));
      const codes = ["engine/bad-reply", "engine/nan"];
      assert.ok(codes.includes(code), `Expected a refusal of ${logprob}, got ${code}`);
    }
  },

  "scores again after it refused a score": async (harness: ScoringHarness) => {
    const token = { logprob: 0.1 };
    const turns = { "session-0": TURNS };
    await using tested = await start(harness, { kind: "malforms", turns, token, replyCount: 1 });
    assert.equal((await tested.score(SCORED)).length, 3);
    assert.deepEqual(tested.seenPrompts(), [SCORED.ids, SCORED.ids]);
  },

  "scores again after the engine interrupted it": async (harness: ScoringHarness) => {
    const scenario = { kind: "interrupts", turns: { "session-0": TURNS }, afterTokens: 0 } as const;
    await using tested = await start(harness, scenario);
    assert.equal((await tested.score(SCORED)).length, 3);
    assert.deepEqual(tested.seenPrompts(), [SCORED.ids, SCORED.ids]);
  },

  "fails to score as `engine/overloaded`, retryable, if the engine has no room": (harness) =>
    assertFails(harness, "engine/overloaded", true),

  "fails to score as `engine/server-error`, retryable, if the engine breaks": (harness) =>
    assertFails(harness, "engine/server-error", true),

  "fails to score as `engine/unauthorized` if the engine wants another key": (harness) =>
    assertFails(harness, "engine/unauthorized", false),

  "fails to score as `engine/prompt-too-long` if the ids exceed the context": (harness) =>
    assertFails(harness, "engine/prompt-too-long", false),

  "fails to score as `engine/unreachable`, retryable, if no server listens": async (
    harness: ScoringHarness,
  ) => {
    await using tested = await start(harness, { kind: "unreachable" });
    const error = await failureOf(tested.score(SCORED));
    assert.equal(error.code, "engine/unreachable");
    assert.equal(error.retryable, true);
  },

  "throws the signal's reason if it is aborted while scoring": async (harness: ScoringHarness) => {
    await using tested = await start(harness, { kind: "hangs" });
    const controller = new AbortController();
    const call = tested.score(SCORED, { signal: controller.signal });
    await tested.untilSeen(1);
    const reason = new Error("the score is not needed");
    controller.abort(reason);
    await assert.rejects(call, (error) => error === reason);
  },

  "sends no request to score if the signal is already aborted": async (harness: ScoringHarness) => {
    await using tested = await start(harness, PLAYS);
    const reason = new Error("too late");
    const signal = AbortSignal.abort(reason);
    await assert.rejects(tested.score(SCORED, { signal }), (error) => error === reason);
    assert.deepEqual(tested.seenPrompts(), []);
  },

  "`close()` ends the scoring in progress, and later calls fail": async (
    harness: ScoringHarness,
  ) => {
    await using tested = await start(harness, { kind: "hangs" });
    const call = assert.rejects(tested.score(SCORED), RolloutError);
    await tested.untilSeen(1);
    await tested.engine.close();
    await call;
    await assert.rejects(tested.score(SCORED));
  },
} satisfies Readonly<Record<string, (harness: ScoringHarness) => Promise<void>>>;

async function assertFails(
  harness: ScoringHarness,
  code: Extract<EngineScenario, { kind: "fails" }>["code"],
  retryable: boolean,
): Promise<void> {
  await using tested = await start(harness, { kind: "fails", code });
  const error = await failureOf(tested.score(SCORED));
  assert.equal(error.code, code);
  assert.equal(error.retryable, retryable);
}

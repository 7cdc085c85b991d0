import { getEventListeners } from "node:events";
import { describe, expect, test } from "vitest";
import type { Engine, EngineDescription } from "../engine/engine.ts";
import { UsageError } from "../errors.ts";
import { createClock } from "../async/clock.ts";
import { createManualClock } from "../testing/manual-clock.ts";
import { askDescription } from "./ask-description.ts";
import { preparedEngine } from "./lamp-episode.fixture.ts";

const sound: EngineDescription = { kind: "own", logprobConvention: "raw", contextLength: 4096 };

/** A custom engine with this description. */
function describing(answer: (signal: AbortSignal | undefined) => unknown): Engine {
  const describe = async ({ signal }: { signal?: AbortSignal } = {}) =>
    (await answer(signal)) as EngineDescription;
  return { ...preparedEngine([]), kind: "own", describe };
}

test("returns a copy of the engine's description", async () => {
  const given = { ...sound, model: "m", warnings: ["w"], more: { of: "it" } };
  const description = await askDescription(describing(() => given));
  expect(description).toEqual(given);
  expect(description).not.toBe(given);
});

test("null and false count as absent, as in plain JavaScript", async () => {
  const given = { ...sound, url: null, model: null, warnings: null, isConventionAssumed: false };
  expect(await askDescription(describing(() => given))).toStrictEqual(sound);
});

test("reads members that are getters of a class", async () => {
  class Told {
    readonly #kind = "own";
    readonly contextLength = 4096;
    get kind(): string {
      return this.#kind;
    }
    get logprobConvention(): string {
      return "raw";
    }
  }
  expect(await askDescription(describing(() => new Told()))).toStrictEqual(sound);
});

describe("an invalid context length is left out with a warning", () => {
  test.each([
    [0, "0"],
    [-1, "-1"],
    [1.5, "1.5"],
    [Number.NaN, "NaN"],
    [Infinity, "Infinity"],
    [null, "null"],
    ["4096", '"4096"'],
  ])("%s", async (contextLength, shown) => {
    const warnings = ["w"];
    const engine = describing(() => ({ ...sound, contextLength, warnings }));
    expect(await askDescription(engine)).toEqual({
      kind: "own",
      logprobConvention: "raw",
      warnings: [
        "w",
        `the engine own names the context length ${shown}, expected a whole number of at least 1: it is taken for ` +
          "unknown; give it by max-context, so that episodes end before it is full",
      ],
    });
  });

  test("accepts no context length, and the smallest one", async () => {
    const least = { ...sound, contextLength: 1 };
    expect(await askDescription(describing(() => least))).toEqual(least);
    const { contextLength: _none, ...bare } = sound;
    expect(await askDescription(describing(() => bare))).toEqual(bare);
    const absent = { ...sound, contextLength: undefined };
    expect(await askDescription(describing(() => absent))).toEqual(bare);
  });
});

test.each<[unknown, string]>([
  [undefined, "it returned nothing (a forgotten return?), expected an EngineDescription"],
  ["own", 'it returned "own", expected an EngineDescription'],
  [{ ...sound, kind: undefined }, "its kind is nothing, expected a text"],
  [{ kind: "own" }, 'its logprobConvention is nothing, expected "tempered", "raw" or "processed"'],
  [{ ...sound, kind: null }, "its kind is nothing, expected a text"],
  [{ ...sound, weightsFile: 7 }, "its weightsFile is 7, expected a text or nothing"],
  [
    { ...sound, isConventionAssumed: "yes" },
    'its isConventionAssumed is "yes", expected true or nothing',
  ],
  [{ ...sound, policyVersion: 7 }, "its policyVersion is 7, expected a text or nothing"],
  [{ ...sound, warnings: "w" }, 'its warnings is "w", expected a list of texts or nothing'],
  [
    { ...sound, size: 7n },
    "its size cannot be written as JSON (Do not know how to serialize a BigInt), expected plain values",
  ],
])("an answer that is no description is the engine's failure: %o", async (answer, problem) => {
  await expect(askDescription(describing(() => answer))).rejects.toMatchObject({
    name: "RolloutError",
    code: "engine/bad-reply",
    message: `Cannot use the answer of describe() of the engine own: ${problem}`,
  });
});

test("an error of describe() is the engine's failure, except a UsageError", async () => {
  const cause = new Error("db away");
  const failing = describing(() => {
    throw cause;
  });
  await expect(askDescription(failing)).rejects.toMatchObject({
    name: "RolloutError",
    code: "engine/exception",
    cause,
    message: "Cannot describe the engine own: db away",
  });
  const lacking = { ...failing, describe: undefined } as unknown as Engine;
  await expect(askDescription(lacking)).rejects.toMatchObject({ code: "engine/exception" });
  const refusing = describing(() => {
    throw new UsageError("Cannot ask the engine: it was closed");
  });
  await expect(askDescription(refusing)).rejects.toThrow(UsageError);
});

test("an engine that never answers times out, and its signal aborts", async () => {
  const clock = createManualClock();
  const seen: (AbortSignal | undefined)[] = [];
  const hung = describing((signal) => {
    seen.push(signal);
    return new Promise(() => {});
  });
  const asked = askDescription(hung, { timeoutMs: 500, clock: createClock(clock) });
  const outcome = expect(asked).rejects.toMatchObject({
    code: "engine/timeout",
    retryable: true,
    message:
      "Cannot describe the engine own: no answer within 500 ms, expected one (a forgotten resolve in describe()?)",
  });
  await clock.advance(500);
  await outcome;
  expect(seen[0]?.aborted).toBe(true);
  expect(clock.pendingCount).toBe(0);
});

test("an abort ends the wait for an engine that never answers", async () => {
  const stopper = new AbortController();
  const { signal } = stopper;
  const hung = describing(() => new Promise(() => {}));
  const reason = new Error("enough");
  const outcome = expect(askDescription(hung, { signal })).rejects.toBe(reason);
  stopper.abort(reason);
  await outcome;
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

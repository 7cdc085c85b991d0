import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Engine, Generation, ScoreRequest } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { rescoreFile } from "./rescore-file.ts";
import { toSamples, type Sample } from "./sample.ts";
import { TrajectoryRecorder } from "./trajectory-recorder.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-rescore-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

function generation(outputIds: number[], logprobs: number[]): Generation {
  const pieces = [
    { requestId: "r", tokenCount: outputIds.length, policyVersion: "1", finish: "stop" } as const,
  ];
  return { outputIds, logprobs, finish: { type: "stop" }, pieces, discarded: [] };
}

/** Two turns around an environment's delta; sampled are the ids 10, 11 and 12 at 3, 4 and 7. */
function sampleOf(rolloutId: string, logprobs: readonly [number, number, number]): Sample {
  const recorder = new TrajectoryRecorder();
  recorder.openSegment([1, 2, 3]);
  recorder.appendTurn(generation([10, 11], [logprobs[0], logprobs[1]]));
  recorder.appendDelta({ ids: [20, 21], text: "", closeSynthesised: false });
  recorder.appendTurn(generation([12], [logprobs[2]]));
  const identity = { rolloutId, groupId: rolloutId, taskId: rolloutId };
  const end = { outcome: "completed", stopReason: "user-left", reward: 1 } as const;
  return toSamples(recorder.toSegments(), identity, end)[0]!;
}

const engineWithoutScore: Engine = {
  kind: "fake",
  generate: () => Promise.reject(new Error("not asked")),
  describe: () => Promise.resolve({ kind: "fake", logprobConvention: "tempered" }),
  close: () => Promise.resolve(),
};

/** Scores the id at index i with -i / 8. */
function scoringEngine(requests: ScoreRequest[]): Engine {
  return {
    ...engineWithoutScore,
    score: (request) => {
      requests.push(request);
      const { ids, from = 1 } = request;
      return Promise.resolve(ids.slice(from).map((_, index) => -(from + index) / 8));
    },
  };
}

async function fileOf(name: string, lines: readonly string[]): Promise<string> {
  const file = path.join(scratch, name);
  await writeFile(file, lines.map((line) => `${line}\n`).join(""));
  return file;
}

const right = [-3 / 8, -4 / 8, -7 / 8] as const;

describe("rescoreFile()", () => {
  test("scores each sampled token after the tokens before it", async () => {
    const file = await fileOf("right.jsonl", [JSON.stringify(sampleOf("a", right))]);
    const requests: ScoreRequest[] = [];
    const options = { engine: scoringEngine(requests), temperature: 0.5, tolerance: 0 };
    expect(await rescoreFile(file, options)).toEqual({
      engine: "fake",
      logprobConvention: "tempered",
      temperature: 0.5,
      tokenCount: 3,
      rowCount: 1,
      emptyCount: 0,
      skipped: [],
      meanDifference: 0,
      largest: {
        line: 1,
        rolloutId: "a",
        turnIndex: 0,
        index: 3,
        tokenId: 10,
        recorded: -0.375,
        rescored: -0.375,
        difference: 0,
      },
      tolerance: 0,
      beyondToleranceCount: 0,
      beyondTolerance: [],
    });
    expect(requests).toEqual([
      { ids: [1, 2, 3, 10, 11, 20, 21, 12], from: 3, sampling: { temperature: 0.5 } },
    ]);
  });

  test("reports the largest and the mean difference", async () => {
    const file = await fileOf("wrong.jsonl", [
      JSON.stringify(sampleOf("a", right)),
      "",
      JSON.stringify(sampleOf("b", [-3 / 8, -6 / 8, -8 / 8])),
    ]);
    const options = { engine: scoringEngine([]), temperature: 1, tolerance: 0.01, concurrency: 1 };
    const worst = {
      line: 3,
      rolloutId: "b",
      turnIndex: 0,
      index: 4,
      tokenId: 11,
      recorded: -0.75,
      rescored: -0.5,
      difference: 0.25,
    };
    expect(await rescoreFile(file, options)).toMatchObject({
      tokenCount: 6,
      meanDifference: (0.25 + 0.125) / 6,
      largest: worst,
      beyondToleranceCount: 2,
      beyondTolerance: [worst],
    });
  });

  test("names each row that cannot be scored, and counts rows without sampled ids", async () => {
    const whole = JSON.stringify(sampleOf("a", right));
    const sample = sampleOf("b", right);
    const bent = JSON.stringify({ ...sample, lossMask: [] });
    const placeless = JSON.stringify({ ...sample, turns: [{ start: 3 }] });
    const silent = JSON.stringify({ ...sample, turns: [] });
    const file = await fileOf("bent.jsonl", [whole.slice(0, -9), bent, silent, placeless, whole]);
    const options = { engine: scoringEngine([]), temperature: 1, tolerance: 0 };
    const result = await rescoreFile(file, options);
    expect(result).toMatchObject({ tokenCount: 3, rowCount: 1, emptyCount: 1 });
    expect(result.skipped.map(({ line, rule }) => `${line} ${rule}`)).toEqual([
      "1 json",
      "2 length",
      "4 shape",
    ]);
  });

  test("scores a row with damaged hashes, reward or logprobs", async () => {
    const sample = sampleOf("a", right);
    const turns = sample.turns.map((turn) => ({ ...turn, promptHash: undefined }));
    const logprobs = sample.logprobs.map((logprob, index) => (index === 4 ? null : logprob));
    const file = await fileOf("damaged.jsonl", [
      JSON.stringify({ ...sample, turns, reward: "much", logprobs }),
    ]);
    const options = { engine: scoringEngine([]), temperature: 1, tolerance: 0 };
    expect(await rescoreFile(file, options)).toMatchObject({
      tokenCount: 3,
      skipped: [],
      beyondToleranceCount: 1,
      beyondTolerance: [{ index: 4, recorded: null, difference: Infinity }],
    });
  });

  test("has no differences if no token was scored", async () => {
    const file = await fileOf("torn.jsonl", ['{"format":1']);
    const options = { engine: scoringEngine([]), temperature: 1, tolerance: 0 };
    const result = await rescoreFile(file, options);
    expect(result.skipped).toHaveLength(1);
    expect(result).not.toHaveProperty("largest");
    expect(result).not.toHaveProperty("meanDifference");
  });

  test("counts a score that is not a number as beyond every tolerance", async () => {
    const file = await fileOf("nan.jsonl", [JSON.stringify(sampleOf("a", right))]);
    const engine = { ...scoringEngine([]), score: () => Promise.resolve([NaN, NaN, 0, 0, NaN]) };
    const result = await rescoreFile(file, { engine, temperature: 1, tolerance: 1 });
    expect(result.beyondToleranceCount).toBe(3);
    expect(result.beyondTolerance).toMatchObject([{ index: 3, difference: Infinity }]);
  });

  test("refuses an engine that cannot score, and passes a failure on", async () => {
    const file = await fileOf("a.jsonl", [JSON.stringify(sampleOf("a", right))]);
    const options = { temperature: 1, tolerance: 0 };
    await expect(rescoreFile(file, { ...options, engine: engineWithoutScore })).rejects.toThrow(
      "Cannot score samples with fake: expected an engine that can, such as reference or llama",
    );
    const broken = { ...engineWithoutScore, score: () => Promise.reject(new Error("gone")) };
    await expect(rescoreFile(file, { ...options, engine: broken })).rejects.toThrow("gone");
    await expect(
      rescoreFile(path.join(scratch, "absent"), { ...options, engine: scoringEngine([]) }),
    ).rejects.toThrow(/^Cannot read .*absent: expected a readable file of samples$/);
  });
});

test("the first failure stops new requests and aborts running ones", async () => {
  const row = JSON.stringify(sampleOf("one", [-0.375, -0.5, -0.875]));
  const file = await fileOf(
    "unreachable.jsonl",
    Array.from({ length: 100 }, () => row),
  );
  const outage = new RolloutError("engine/unreachable", "Cannot reach the engine");
  let asked = 0;
  let calledOff = 0;
  const engine: Engine = {
    ...engineWithoutScore,
    score: async (_request, { signal } = {}) => {
      asked += 1;
      if (asked === 4) throw outage;
      return await new Promise((_resolve, reject) => {
        signal?.addEventListener("abort", () => {
          calledOff += 1;
          reject(new Error("called off"));
        });
      });
    },
  };
  const rescoring = rescoreFile(file, { engine, temperature: 1, tolerance: 0, concurrency: 4 });
  await expect(rescoring).rejects.toBe(outage);
  expect({ asked, calledOff }).toEqual({ asked: 4, calledOff: 3 });
});

test("the caller's signal aborts it", async () => {
  const row = JSON.stringify(sampleOf("one", [-0.375, -0.5, -0.875]));
  const file = await fileOf("called-off.jsonl", [row, row]);
  const caller = new AbortController();
  const engine: Engine = {
    ...engineWithoutScore,
    score: async (_request, { signal } = {}) => {
      caller.abort(new Error("enough"));
      signal?.throwIfAborted();
      return [];
    },
  };
  const options = { engine, temperature: 1, tolerance: 0, signal: caller.signal };
  await expect(rescoreFile(file, options)).rejects.toThrow("enough");
});

test("rows scored at once cause no listener warning", async () => {
  const row = JSON.stringify(sampleOf("one", [-0.375, -0.5, -0.875]));
  const file = await fileOf(
    "many.jsonl",
    Array.from({ length: 32 }, () => row),
  );
  const warnings: Error[] = [];
  const onWarning = (warning: Error): void => void warnings.push(warning);
  process.on("warning", onWarning);
  const all = withResolvers();
  let asked = 0;
  const engine: Engine = {
    ...engineWithoutScore,
    score: async (_request, { signal } = {}) => {
      signal?.addEventListener("abort", () => {});
      asked += 1;
      if (asked === 32) all.resolve();
      await all.promise;
      return [];
    },
  };
  await rescoreFile(file, { engine, temperature: 1, tolerance: 0 }).catch(() => {});
  await new Promise((resolve) => setImmediate(resolve));
  process.off("warning", onWarning);
  expect(asked).toBe(32);
  expect(warnings).toEqual([]);
});

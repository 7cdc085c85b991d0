import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Cause,
  diagnose,
  diagnosisText,
  type DiagnoseOptions,
  type TrainerRow,
} from "../../src/doctor/index.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { moved, type PairSettings, routesOf, routeShape, simulatePair } from "./simulated-pairs.ts";

const source = { read: () => Promise.reject(new Error("the parts have their bytes")) };
const routes = { shape: routeShape, source };

type Policy = Pick<PairSettings, "seed" | "rowCount" | "spread">;

const policies = fc.record({
  seed: fc.integer({ min: 0, max: 1e6 }),
  rowCount: fc.integer({ min: 6, max: 12 }),
  spread: fc.double({ min: 1.5, max: 5, noNaN: true }),
});

/** Holds the causes of random pairs to the expected ones. */
async function expectCauses(
  expected: readonly Cause["name"][],
  plant: (policy: Policy) => {
    readonly rows: readonly Sample[];
    readonly trainer: readonly TrainerRow[];
    readonly options?: DiagnoseOptions;
  },
): Promise<void> {
  await fc.assert(
    fc.asyncProperty(policies, async (policy) => {
      const { rows, trainer, options } = plant(policy);
      const diagnosis = await diagnose(rows, trainer, options);
      const findings = diagnosis.causes.filter(({ isFinding }) => isFinding);
      expect(
        findings.map(({ name }) => name),
        diagnosisText(diagnosis),
      ).toEqual(expected);
    }),
    { seed: 44, numRuns: 4 },
  );
}

/** A pair without a fault, with the trainer's rows changed. */
function changed(policy: Policy, change: (row: TrainerRow, sample: Sample) => TrainerRow) {
  const { rows, trainer } = simulatePair(policy);
  return { rows, trainer: trainer.map((row, index) => change(row, rows[index]!)) };
}

describe("healthy pairs", () => {
  test("are healthy", async () => {
    await expectCauses([], (policy) => simulatePair(policy));
  });

  test("are healthy if the trainer's logprobs are rounded to 16 bits", async () => {
    await fc.assert(
      fc.asyncProperty(policies, async (policy) => {
        const { rows, trainer } = simulatePair({ ...policy, rounded: "logprobs" });
        const { verdict, causes } = await diagnose(rows, trainer);
        expect([verdict, causes]).toEqual(["healthy", []]);
      }),
      { seed: 44, numRuns: 4 },
    );
  });

  test("are nothing but numerics within the thresholds if its logits are rounded to 16 bits", async () => {
    await expectCauses([], (policy) => simulatePair({ ...policy, rounded: "logits" }));
  });

  test("are healthy at any temperature, and with equal routes", async () => {
    await expectCauses([], (policy) => {
      const { rows, trainer } = simulatePair({ ...policy, temperature: 0.6 });
      const withRoutes = trainer.map((row, index) => {
        return { ...row, routedExperts: routesOf(rows[index]!) };
      });
      const facts = { temperature: 0.6, logprobConvention: "tempered" } as const;
      return { rows, trainer: withRoutes, options: { facts, routes } };
    });
  });
});

describe("a planted fault is named", () => {
  test.each([-2, -1, 1, 2])("logprobs moved by %i", async (shift) => {
    await expectCauses(["shifted"], (policy) =>
      changed(policy, (row) => ({ ...row, logprobs: moved(row.logprobs, shift) })),
    );
  });

  test.each([-1, 1])("logprobs with 0 where the mask is 0, moved by %i", async (shift) => {
    await expectCauses(["shifted"], (policy) =>
      changed(policy, (row, { lossMask }) => {
        const masked = row.logprobs.map((value, index) => (lossMask[index] === 1 ? value : 0));
        return { ...row, logprobs: moved(masked, shift) };
      }),
    );
  });

  test.each([
    [-1, 0],
    [1, NaN],
  ])("a mask moved by %i, with %d elsewhere", async (shift, filler) => {
    await expectCauses(["mask-shifted"], (policy) =>
      changed(policy, (row, { lossMask }) => {
        const logprobs = row.logprobs.map((value, index) =>
          lossMask[index - shift] === 1 ? value : filler,
        );
        return { ...row, logprobs };
      }),
    );
  });

  test("stale weights in every second row", async () => {
    await expectCauses(["stale-weights"], (policy) => simulatePair({ ...policy, staleness: 0.6 }));
  });

  test("other weights under the same version", async () => {
    await expectCauses(["other-weights"], (policy) => {
      const { rows, trainer } = simulatePair({ ...policy, staleness: 1.2 });
      const stale = (row: { readonly rolloutId: string }) =>
        Number(row.rolloutId.slice(4)) % 2 === 0;
      const policyVersion = "6";
      return {
        rows: rows.filter(stale),
        trainer: trainer.filter(stale).map((row) => ({ ...row, policyVersion })),
      };
    });
  });

  test.each([0.5, 0.7, 1.4])(
    "a trainer at temperature 1, and an engine at %d",
    async (temperature) => {
      await expectCauses(["wrong-temperature"], (policy) => ({
        ...simulatePair({ ...policy, temperature, trainerTemperature: 1 }),
        options: { facts: { temperature, logprobConvention: "tempered" } },
      }));
    },
  );

  test("an engine over the kept tokens", async () => {
    await expectCauses(["other-token-set"], (policy) => ({
      ...simulatePair({ ...policy, topK: 4 }),
      options: { facts: { temperature: 1, hasTruncation: true, logprobConvention: "processed" } },
    }));
  });

  test.each([
    ["padded", (place: number) => place % routeShape.perToken],
    ["zeros", () => 0],
    ["shifted", (place: number, ids: Uint8Array) => ids[Math.max(0, place - 8)]!],
    [
      "other",
      (place: number, ids: Uint8Array) => (place % 50 === 0 ? (ids[place]! + 7) % 16 : ids[place]!),
    ],
  ] as const)("routes that are %s", async (_, change) => {
    await expectCauses(["routes-not-replayed"], (policy) => {
      const pair = changed(policy, (row, sample) => {
        const table = routesOf(sample);
        const own = Uint8Array.from(table.ids);
        return {
          ...row,
          routedExperts: { ...table, ids: own.map((_id, place) => change(place, own)) },
        };
      });
      return { ...pair, options: { routes } };
    });
  });

  test("two faults at once, the stronger one first", async () => {
    await expectCauses(["shifted", "stale-weights"], (policy) => {
      const { rows, trainer } = simulatePair({ ...policy, staleness: 0.6 });
      const shifted = trainer.map((row) => ({ ...row, logprobs: moved(row.logprobs, -1) }));
      return { rows, trainer: shifted };
    });
  });
});

test("versions that are unknown leave the cause open", async () => {
  const { rows, trainer } = simulatePair({ seed: 1, rowCount: 6, spread: 3, staleness: 0.6 });
  const unknown = trainer.map(({ rolloutId, segment, logprobs }) => ({
    rolloutId,
    segment,
    logprobs,
  }));
  expect((await diagnose(rows, unknown)).verdict).toBe("unknown-lag");
  const assumed = await diagnose(rows, unknown, { assumedLag: 0 });
  expect(Object.keys(assumed.byLag)).toEqual(["0"]);
});

test("problems of the input are named and counted", async () => {
  const { rows, trainer } = simulatePair({ seed: 2, rowCount: 6, spread: 3 });
  const [first, second, third, fourth, fifth] = trainer.map((row) => {
    return { ...row, logprobs: row.logprobs.slice() };
  });
  first!.logprobs.fill(NaN, 30, 33);
  second!.logprobs[40] = Infinity;
  third!.logprobs[40] = 0.5;
  const given = [
    first!,
    second!,
    third!,
    { ...fourth!, logprobs: fourth!.logprobs.slice(1) },
    fifth!,
    fifth!,
    { ...fifth!, segment: 4 },
  ];
  const diagnosis = await diagnose(rows, given);
  expect(diagnosis.problems).toEqual([
    { kind: "doubled-row", rowCount: 1, examples: ["entry 6: row 4, row 0"] },
    { kind: "wrong-length", rowCount: 1, examples: ["row 3, row 0: 89 logprobs for 90 tokens"] },
    { kind: "missing-row", rowCount: 1, examples: ["row 5, row 0"] },
    { kind: "unknown-row", rowCount: 1, examples: ["row 4, row 4"] },
    { kind: "missing-value", rowCount: 1, tokenCount: 3, examples: ["row 0, row 0"] },
    { kind: "not-finite", rowCount: 1, tokenCount: 1, examples: ["row 1, row 0"] },
    { kind: "above-zero", rowCount: 1, tokenCount: 1, examples: ["row 2, row 0"] },
  ]);
  expect(diagnosis.verdict).toBe("incomplete");
  expect(diagnosis.counts).toEqual({ rowCount: 4, trainedTokenCount: 232, tokenCount: 227 });
});

test("rows that the file lacks are a remark if they may be lacking", async () => {
  const { rows, trainer } = simulatePair({ seed: 2, rowCount: 6, spread: 3 });
  const some = trainer.slice(1);
  expect((await diagnose(rows, some)).verdict).toBe("incomplete");
  const { verdict, notes } = await diagnose(rows, some, { isPartial: true });
  expect([verdict, notes[0]]).toEqual([
    "healthy",
    "1 row of the run without a line in the file, such as row 0, row 0.",
  ]);
});

test("rows of another run cannot be compared", async () => {
  const { rows, trainer } = simulatePair({ seed: 3, rowCount: 6, spread: 3 });
  const other = trainer.map((row) => ({ ...row, rolloutId: `other ${row.rolloutId}` }));
  const { verdict, causes } = await diagnose(rows, other);
  expect(verdict).toBe("nothing-compared");
  expect(causes.map(({ name }) => name)).toEqual(["nothing-compared", "incomplete"]);
});

test("routes that some rows or their last tokens lack are named, if other rows have routes", async () => {
  const { rows, trainer } = simulatePair({ seed: 2, rowCount: 6, spread: 3 });
  const [first, second, ...others] = trainer.map((row, index) => ({
    row,
    table: routesOf(rows[index]!),
  }));
  const { rows: count, layerCount, perToken, ids } = second!.table;
  const short = ids.slice(0, (count - 9) * layerCount * perToken);
  const given = [
    first!.row,
    { ...second!.row, routedExperts: { ...second!.table, rows: count - 9, ids: short } },
    ...others.map(({ row, table }) => ({ ...row, routedExperts: table })),
  ];
  const last = rows[0]!.lossMask.lastIndexOf(1);
  const { verdict, problems } = await diagnose(rows, given, { routes });
  expect(verdict).toBe("incomplete");
  expect(problems).toEqual([
    {
      kind: "missing-routes",
      rowCount: 2,
      tokenCount: last + (last - (count - 9)),
      examples: ["row 0, row 0", "row 1, row 0"],
    },
  ]);
  const none = await diagnose(rows, trainer, { routes });
  expect([none.verdict, none.problems]).toEqual(["healthy", []]);
});

test("routes of -1 are filler", async () => {
  const { rows, trainer } = simulatePair({ seed: 2, rowCount: 6, spread: 3 });
  const given = trainer.map((row, index) => {
    const table = routesOf(rows[index]!);
    return { ...row, routedExperts: { ...table, ids: new Int8Array(table.ids.length).fill(-1) } };
  });
  const { routes: figures, text } = await diagnose(rows, given, { routes });
  expect(figures?.paddedShare).toBe(1);
  expect(text).toContain("the trainer dropped or padded them");
});

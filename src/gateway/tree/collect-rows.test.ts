import { describe, expect, test } from "vitest";
import fc from "fast-check";
import { toSamples } from "../../trajectory/sample.ts";
import { RolloutCheck } from "../../trajectory/rollout-check.ts";
import { verifySample } from "../../trajectory/verify-sample.ts";
import type { RawRow } from "../../trajectory/violation.ts";
import { collectRows, type TreeRow } from "./collect-rows.ts";
import { lineageOf } from "../lineage/derive-lineage.ts";
import { promptOf, RandomSession, type ClientStep } from "./random-session.fixture.ts";

const habits = fc.record({
  respells: fc.boolean(),
  dropsReasoning: fc.boolean(),
  dropsText: fc.boolean(),
  reordersResults: fc.boolean(),
  renamesCalls: fc.boolean(),
  addsUserText: fc.boolean(),
});

const steps = fc.array(
  fc.record<ClientStep>({
    kind: fc.constantFrom(
      ...(["begin", "continue", "continue", "continue", "edit", "again"] as const),
      ...(["compact", "resume"] as const),
    ),
    turn: fc.nat(20),
    edited: fc.nat(20),
    calls: fc.constantFrom(0, 1, 2),
    saysText: fc.boolean(),
    isDelivered: fc.boolean(),
    isTrainable: fc.oneof({ weight: 4, arbitrary: fc.constant(true) }, fc.constant(false)),
    habits,
  }),
  { minLength: 1, maxLength: 25 },
);

function playAll(script: readonly ClientStep[]): RandomSession {
  const session = new RandomSession();
  for (const step of script) session.play(step);
  return session;
}

/** Returns the rows of a session, and the indexes of its rejected turns. */
function rowsOf({ tree: { nodes } }: RandomSession) {
  const rejected = new Set(
    lineageOf(nodes).flatMap(({ rejected: why }, index) => (why === undefined ? [] : [index])),
  );
  return { rows: collectRows(nodes, { rejected }), rejected };
}

type Rows = readonly TreeRow<RandomSession["tree"]["nodes"][number]["record"]>[];

/** Converts rows to the form of `samples.jsonl`. */
function samplesOf(rows: Rows): readonly RawRow[] {
  const identity = { rolloutId: "t#0", groupId: "t", taskId: "t" };
  const end = { outcome: "completed", stopReason: "finished", reward: 1 } as const;
  const segments = rows.map(({ segment }) => segment);
  return JSON.parse(JSON.stringify(toSamples(segments, identity, end))) as RawRow[];
}

const simple: ClientStep = {
  kind: "continue",
  turn: 0,
  edited: 0,
  calls: 0,
  saysText: true,
  isDelivered: true,
  isTrainable: true,
  habits: {
    respells: false,
    dropsReasoning: false,
    dropsText: false,
    reordersResults: false,
    renamesCalls: false,
    addsUserText: false,
  },
};

describe("a session of random clients", () => {
  test("each request continues the deepest turn that it repeats, in any wording", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const { placed } = playAll(script);
        expect(placed.map(({ actual }) => actual)).toEqual(placed.map(({ expected }) => expected));
      }),
      { numRuns: 100 },
    );
  });

  test("the prompt of a continued turn starts with exactly the earlier ids", () => {
    fc.assert(
      fc.property(steps, (script) => {
        for (const node of playAll(script).tree.nodes) {
          expect(promptOf(node)).toEqual(node.record.promptIds);
          const { parent } = node;
          if (parent === undefined) continue;
          const before = [...parent.record.promptIds, ...parent.record.generation.outputIds];
          expect(node.record.promptIds.slice(0, before.length)).toEqual(before);
        }
      }),
      { numRuns: 60 },
    );
  });

  test("each delivered id that is not rejected is trained in exactly one row, unchanged", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const session = playAll(script);
        const { rows, rejected } = rowsOf(session);
        const trained = rows.flatMap(({ segment }) =>
          segment.tokenIds.flatMap((id, place) =>
            segment.lossMask[place] === 1 ? [[id, segment.logprobs[place]]] : [],
          ),
        );
        const wanted = session.tree.nodes
          .filter(({ isDelivered, record }) => isDelivered && record.isTrainable)
          .filter(({ index }) => !rejected.has(index))
          .flatMap(({ record: { generation } }) =>
            generation.outputIds.map((id, place) => [id, generation.logprobs[place]]),
          );
        const byId = (left: unknown[], right: unknown[]) => Number(left[0]) - Number(right[0]);
        expect(trained.toSorted(byId)).toEqual(wanted.toSorted(byId));
      }),
      { numRuns: 100 },
    );
  });

  test("a rejected turn is in no row, and each row has a trained id", () => {
    let rejectedCount = 0;
    fc.assert(
      fc.property(steps, (script) => {
        const { rows, rejected } = rowsOf(playAll(script));
        rejectedCount += rejected.size;
        for (const { trained, segment } of rows) {
          expect(trained.filter(({ index }) => rejected.has(index))).toEqual([]);
          expect(segment.lossMask).toContain(1);
        }
      }),
      { numRuns: 100, seed: 1 },
    );
    expect(rejectedCount).toBeGreaterThan(20);
  });

  test("links lead to earlier turns, and only turns without a successor are rejected", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const { nodes } = playAll(script).tree;
        lineageOf(nodes).forEach(({ from, rejected }, index) => {
          if (from !== undefined) expect(from.turn).toBeLessThan(index);
          if (rejected !== undefined) expect(nodes[index]!.children).toEqual([]);
        });
      }),
      { numRuns: 60 },
    );
  });

  test("the rows pass the verifier, individually and together", () => {
    fc.assert(
      fc.property(steps, (script) => {
        const samples = samplesOf(rowsOf(playAll(script)).rows);
        const together = new RolloutCheck();
        const found = samples.flatMap((row, line) => [
          ...verifySample(row),
          ...together.check(row, line),
        ]);
        expect(found).toEqual([]);
      }),
      { numRuns: 60 },
    );
  });
});

describe("collectRows()", () => {
  test("trains a shared turn in the newest branch, with mask 0 in the older one", () => {
    const session = playAll([
      { ...simple, kind: "begin" },
      { ...simple, turn: 0 },
      { ...simple, turn: 0 },
    ]);
    const rows = collectRows(session.tree.nodes);
    expect(rows.map(({ segment }) => segment.tokenIds)).toEqual([
      [1, 0, 1001, 1002, 1003, 2, 2, 1021, 1022, 1023],
      [1, 0, 1001, 1002, 1003, 2, 1, 1011, 1012, 1013],
    ]);
    expect(rows.map(({ segment }) => segment.lossMask)).toEqual([
      [0, 0, 1, 1, 1, 0, 0, 1, 1, 1],
      [0, 0, 0, 0, 0, 0, 0, 1, 1, 1],
    ]);
    expect(rows.map(({ trained }) => trained.map(({ index }) => index))).toEqual([[0, 2], [1]]);
  });

  test("omits an undelivered branch unless its text was used, and trains its shared turns in another row", () => {
    const session = playAll([
      { ...simple, kind: "begin" },
      { ...simple, turn: 0 },
      { ...simple, turn: 0, isDelivered: false },
    ]);
    const rows = collectRows(session.tree.nodes);
    expect(rows.map(({ trained }) => trained.map(({ index }) => index))).toEqual([[0, 1]]);
    const used = collectRows(session.tree.nodes, { received: new Set([2]) });
    expect(used.map(({ trained }) => trained.map(({ index }) => index))).toEqual([[0, 2], [1]]);
  });

  test("gives a shared turn to the older branch if the newer one is rejected", () => {
    const session = playAll([
      { ...simple, kind: "begin" },
      { ...simple, turn: 0 },
      { ...simple, turn: 0 },
    ]);
    const rows = collectRows(session.tree.nodes, { rejected: new Set([2]) });
    expect(rows.map(({ trained }) => trained.map(({ index }) => index))).toEqual([[0, 1]]);
  });

  test("returns the row of the first conversation, or the one with most sampled ids", () => {
    const session = playAll([
      { ...simple, kind: "begin" },
      { ...simple, kind: "begin" },
      { ...simple, turn: 1 },
    ]);
    const trained = (choice: "main" | "longest") =>
      collectRows(session.tree.nodes, { choice }).map((row) =>
        row.trained.map(({ index }) => index),
      );
    expect(trained("main")).toEqual([[0]]);
    const afterTitle = { choice: "main", isMain: (turn: number) => turn > 0 } as const;
    const [row] = collectRows(session.tree.nodes, afterTitle);
    expect(row!.trained.map(({ index }) => index)).toEqual([1, 2]);
    expect(trained("longest")).toEqual([[1, 2]]);
  });
});

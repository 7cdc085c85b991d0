import fc from "fast-check";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Generation } from "../engine/engine.ts";
import { stopReasons, toSamples, type RolloutEnd, type Sample } from "./sample.ts";
import { TrajectoryRecorder } from "./trajectory-recorder.ts";
import { verifyFile } from "./verify-file.ts";
import { verifySample } from "./verify-sample.ts";

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-round-trip-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const id = fc.nat({ max: 2 ** 31 - 1 });
const ids = fc.array(id, { minLength: 1, maxLength: 6 });
// Never all certain: that is a finding of its own.
const logprob = fc.double({ min: -9_000, max: -1e-9, noNaN: true });

/** The ids of one turn, and the event after it. */
const turn = fc.record({
  sampled: fc.array(fc.record({ id, logprob }), { minLength: 1, maxLength: 6 }),
  cut: fc.nat(),
  after: fc.constantFrom("answered", "closed", "dropped", "rewritten"),
  answer: ids,
});

type Turn = typeof turn extends fc.Arbitrary<infer Value> ? Value : never;

const end: fc.Arbitrary<RolloutEnd> = fc.oneof(
  fc.record({
    outcome: fc.constant("completed" as const),
    stopReason: fc.constantFrom(...stopReasons.completed.filter((why) => why !== "unscored")),
    reward: fc.float({ noNaN: true, noDefaultInfinity: true }),
  }),
  fc.constant({ outcome: "truncated", stopReason: "deadline" } as const),
  fc.constant({ outcome: "completed", stopReason: "unscored" } as const),
  fc.constant({
    outcome: "failed",
    stopReason: "failure",
    failure: { party: "engine", code: "engine/timeout", message: "m" },
  } as const),
);

function toGeneration({ sampled, cut, after }: Turn): Generation {
  const first = cut % (sampled.length + 1);
  return {
    outputIds: sampled.map((token) => token.id),
    logprobs: sampled.map((token) => token.logprob),
    finish: { type: after === "closed" ? "length" : "stop" },
    pieces: [
      { requestId: "a", tokenCount: first, policyVersion: "7", finish: "abort" },
      { requestId: "b", tokenCount: sampled.length - first, policyVersion: "8", finish: "stop" },
    ],
    discarded: [],
  };
}

/** Records the turns, and in parallel the expected contents of the rows. */
function record(prompt: readonly number[], turns: readonly Turn[]) {
  const recorder = new TrajectoryRecorder();
  recorder.openSegment(prompt);
  const rows = [{ ids: [...prompt], sampled: [] as number[], sent: [] as number[][] }];
  for (const played of turns) {
    const row = rows.at(-1)!;
    expect([...recorder.promptIds]).toEqual(row.ids);
    row.sent.push([...row.ids]);
    const generation = toGeneration(played);
    recorder.appendTurn(generation);
    const { after, answer } = played;
    const isDropped = after === "dropped";
    const kept = isDropped ? generation.outputIds.slice(0, -1) : generation.outputIds;
    row.sampled.push(...kept.map((_, index) => row.ids.length + index));
    row.ids.push(...kept);
    if (after === "rewritten") {
      recorder.openSegment(answer);
      rows.push({ ids: [...answer], sampled: [], sent: [] });
      continue;
    }
    const dropped = isDropped ? { droppedStopId: generation.outputIds.at(-1)! } : {};
    recorder.appendDelta({
      ids: answer,
      text: "",
      closeSynthesised: after === "closed",
      ...dropped,
    });
    row.ids.push(...answer);
  }
  // The policy was never asked with the last rewritten history.
  if (rows.length > 1 && rows.at(-1)!.sent.length === 0) rows.pop();
  return { segments: recorder.toSegments(), rows };
}

test("recorded ids are in the rows as they were sampled and sent, and verify", async () => {
  let count = 0;
  await fc.assert(
    fc.asyncProperty(
      ids,
      fc.array(turn, { minLength: 1, maxLength: 8 }),
      end,
      async (prompt, turns, ending) => {
        const { segments, rows } = record(prompt, turns);
        const identity = { rolloutId: "t#0", groupId: "t", taskId: "t" };
        const samples = toSamples(segments, identity, ending);
        expect(samples.map(({ tokenIds }) => tokenIds)).toEqual(rows.map((row) => row.ids));
        for (const [index, { lossMask, tokenIds, turns: spans }] of samples.entries()) {
          const { sampled, sent } = rows[index]!;
          const trained = lossMask.flatMap((bit, place) => (bit === 1 ? [place] : []));
          expect(trained).toEqual(sampled);
          expect(spans.map(({ start }) => tokenIds.slice(0, start))).toEqual(sent);
        }
        const read = JSON.parse(JSON.stringify(samples)) as readonly Sample[];
        expect(read.flatMap((sample) => verifySample(sample))).toEqual([]);
        const file = path.join(scratch, `${count++}.jsonl`);
        await writeFile(file, read.map((sample) => `${JSON.stringify(sample)}\n`).join(""));
        expect((await verifyFile(file)).violations).toEqual([]);
      },
    ),
  );
});

test("no id that was sent or sampled can change without a finding", () => {
  fc.assert(
    fc.property(
      ids,
      fc.array(turn, { minLength: 1, maxLength: 4 }),
      fc.nat(),
      id,
      (prompt, turns, place, other) => {
        const { segments } = record(prompt, turns);
        const ending = { outcome: "completed", stopReason: "finished", reward: 1 } as const;
        const identity = { rolloutId: "t#0", groupId: "t", taskId: "t" };
        const [sample] = toSamples(segments, identity, ending);
        // The ids after the last turn were never sent. The episode's hash of the row covers them.
        const lastEnd = sample!.turns.at(-1)!.end;
        const index = place % lastEnd;
        fc.pre(sample!.tokenIds[index] !== other);
        const changed = { ...sample!, tokenIds: sample!.tokenIds.with(index, other) };
        expect(verifySample(changed).map(({ rule }) => rule)).toSatisfy(
          (rules: readonly string[]) =>
            rules.includes("request-is-ledger") || rules.includes("trained-is-sampled"),
        );
      },
    ),
  );
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { spellPart } from "../../json/json-pieces.ts";
import { toSamples } from "../../trajectory/sample.ts";
import { columnsOf, createSegment, lengthOf, type Segment } from "../../trajectory/segment.ts";
import type { Span } from "../../trajectory/span.ts";
import { encodeLine, encodeRow } from "../disk/encode-line.ts";
import { findVersions } from "../policy/version-facts.ts";
import { rowParts } from "./row-parts.ts";

const piece = fc.record({
  tokenCount: fc.integer({ min: 0, max: 30 }),
  policyVersion: fc.constantFrom("", "7", "8", 'a"ü'),
});

/** Ids of the environment, and then the pieces of a turn, some of which are empty. */
const turn = fc.record({
  before: fc.integer({ min: 0, max: 40 }),
  pieces: fc.array(piece, { minLength: 1, maxLength: 3 }),
});

const segment = fc
  .record({
    promptLength: fc.integer({ min: 1, max: 40 }),
    turns: fc.array(turn, { maxLength: 5 }),
    after: fc.integer({ min: 0, max: 40 }),
    logprobs: fc.infiniteStream(fc.double({ min: -50, max: 0, noNaN: true })),
  })
  .map(({ promptLength, turns, after, logprobs }) => {
    const spans: Span[] = [];
    const sampled = [];
    const rowTurns = [];
    let end = 0;
    const addTo = (next: number, kind: Span["kind"]): void => {
      if (next > end) spans.push({ kind, start: end, end: next });
      end = next;
    };
    addTo(promptLength, "prompt");
    for (const [turnIndex, { before, pieces }] of turns.entries()) {
      addTo(end + before, "environment");
      const start = end;
      const count = pieces.reduce((sum, { tokenCount }) => sum + tokenCount, 0);
      addTo(start + count, "sampled");
      const hashes = { promptHash: "", outputHash: "" };
      rowTurns.push({ turnIndex, start, end, finish: "stop" as const, ...hashes });
      if (count === 0) continue;
      const own = pieces.map((each) => ({ ...each, requestId: "r", finish: "stop" as const }));
      sampled.push({ start, logprobs: [...logprobs.take(count)], pieces: own });
    }
    addTo(end + after, "environment");
    const ids = Int32Array.from({ length: end }, (_, index) => (index * 7_919) % 1_200_000);
    return createSegment({ ids, sampled, promptLength, spans, turns: rowTurns });
  });

function rowOf(own: Segment) {
  const identity = { rolloutId: "t#0", groupId: "t", taskId: "t" };
  return toSamples([own], identity, { outcome: "completed", stopReason: "finished" })[0]!;
}

/** Returns the segment with its lists made, as an episode has it that was read from a file. */
function plain(own: Segment): Segment {
  return { ...own };
}

test("a row's line is the JSON of its lists, with any part length", () => {
  fc.assert(
    fc.property(segment, fc.integer({ min: 1, max: 50 }), (own, limit) => {
      const row = rowOf(own);
      expect(columnsOf(row)).toBe(columnsOf(own));
      const text = [...rowParts(row, limit)].map(spellPart).join("");
      expect(text).toBe(JSON.stringify(rowOf(plain(own))));
      expect(JSON.parse(JSON.stringify(row))).toEqual(JSON.parse(text));
    }),
  );
});

test("the versions and the length of a segment are those of its lists", () => {
  fc.assert(
    fc.property(segment, (own) => {
      expect(findVersions({ segments: [own] })).toEqual(findVersions({ segments: [plain(own)] }));
      expect(lengthOf(own)).toBe(plain(own).tokenIds.length);
    }),
  );
});

test("lines of long rows have the same bytes and the same hash", async () => {
  const count = 60_000;
  const logprobs = Array.from({ length: count }, (_, index) => -index / 77_777);
  const pieces = [
    { tokenCount: count, policyVersion: "7", requestId: "", finish: "stop" },
  ] as const;
  const own = createSegment({
    ids: Int32Array.from({ length: 200_000 }, (_, index) => (index * 7_919) % 150_000),
    sampled: [{ start: 100_000, logprobs, pieces }],
    promptLength: 100_000,
    spans: [
      { kind: "prompt", start: 0, end: 100_000 },
      { kind: "sampled", start: 100_000, end: 160_000 },
      { kind: "environment", start: 160_000, end: 200_000 },
    ],
    turns: [],
  });
  const [fast, slow] = [await encodeRow(rowOf(own)), await encodeLine(rowOf(plain(own)))];
  expect(Buffer.concat(fast.blocks).equals(Buffer.concat(slow.blocks))).toBe(true);
  expect(fast.hash).toBe(slow.hash);
});

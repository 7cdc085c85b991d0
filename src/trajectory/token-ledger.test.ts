import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Generation } from "../engine/engine.ts";
import { hashIds } from "./rolling-hash.ts";
import { lossMask } from "./span.ts";
import { TokenLedger } from "./token-ledger.ts";

function generation(outputIds: number[], versions: [number, string][] = []): Generation {
  const pieces = versions.length === 0 ? [[outputIds.length, "7"] as const] : versions;
  return {
    outputIds,
    logprobs: outputIds.map((_, index) => -0.1 * (index + 1)),
    finish: { type: "stop", matched: outputIds.at(-1) ?? 0 },
    pieces: pieces.map(([tokenCount, policyVersion], index) => ({
      requestId: `r${index}`,
      tokenCount,
      policyVersion,
      finish: index === pieces.length - 1 ? "stop" : "abort",
    })),
    discarded: [],
  };
}

describe("TokenLedger", () => {
  test("keeps the ids in the order in which they were appended", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1, 2, 3]);
    ledger.appendSampled(0, generation([10, 11]));
    ledger.appendEnvironment([20, 21]);
    ledger.appendSampled(1, generation([12, 99]));
    expect(ledger.ids).toEqual([1, 2, 3, 10, 11, 20, 21, 12, 99]);
    expect(lossMask(ledger.spans)).toEqual([0, 0, 0, 1, 1, 0, 0, 1, 1]);
    expect(ledger.promptLength).toBe(3);
  });

  test("appendSampled() refuses logprobs of another length", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    expect(() => ledger.appendSampled(0, { ...generation([10, 11]), logprobs: [-0.1] })).toThrow(
      "2 sampled ids have 1 logprobs",
    );
  });

  test("appendSampled() refuses a logprob that is not finite", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    const broken = { ...generation([10]), logprobs: [Number.NaN] };
    expect(() => ledger.appendSampled(0, broken)).toThrow("each sampled id has a finite logprob");
    expect(ledger.ids).toEqual([1]);
  });

  test("appendSampled() refuses pieces that do not add up", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    expect(() => ledger.appendSampled(0, generation([10, 11], [[1, "7"]]))).toThrow(
      "pieces of 1 ids make up 2 sampled ids",
    );
  });

  test("refuses ids that are no ids", () => {
    const ledger = new TokenLedger();
    expect(() => ledger.appendPrompt([1, -1])).toThrow("whole number of at least 0");
    expect(() => ledger.appendPrompt([1.5])).toThrow("whole number of at least 0");
  });

  test("refuses a second prompt, and anything sampled before the first", () => {
    const ledger = new TokenLedger();
    expect(() => ledger.appendSampled(0, generation([10]))).toThrow("begins with its prompt");
    ledger.appendPrompt([1]);
    expect(() => ledger.appendPrompt([2])).toThrow("one prompt");
  });

  test("dropStopId() takes exactly the last sampled id out and says so", () => {
    const ledger = new TokenLedger();
    ledger.appendPrompt([1]);
    ledger.appendSampled(
      0,
      generation(
        [10, 11, 12],
        [
          [1, "7"],
          [2, "8"],
        ],
      ),
    );
    ledger.dropStopId(12);
    expect(ledger.ids).toEqual([1, 10, 11]);
    expect(ledger.droppedStops).toEqual([{ turnIndex: 0, id: 12, logprob: -0.1 * 3 }]);
    expect(ledger.digest()).toBe(hashIds([1, 10, 11]));
    expect(() => ledger.dropStopId(12)).toThrow("only the last sampled id can be dropped");
  });

  test("the digest of any way of appending is the hash of the whole", () => {
    const ids = fc.array(fc.nat({ max: 2 ** 31 - 1 }), { minLength: 1, maxLength: 20 });
    fc.assert(
      fc.property(
        ids,
        fc.array(fc.tuple(fc.boolean(), ids), { maxLength: 10 }),
        (prompt, parts) => {
          const ledger = new TokenLedger();
          ledger.appendPrompt(prompt);
          const all = [...prompt];
          const mask = prompt.map(() => 0);
          parts.forEach(([isSampled, part], index) => {
            if (isSampled) ledger.appendSampled(index, generation(part));
            else ledger.appendEnvironment(part);
            all.push(...part);
            mask.push(...part.map(() => (isSampled ? 1 : 0)));
            expect(ledger.digest()).toBe(hashIds(all));
          });
          expect(ledger.ids).toEqual(all);
          expect(lossMask(ledger.spans)).toEqual(mask);
        },
      ),
    );
  });
});

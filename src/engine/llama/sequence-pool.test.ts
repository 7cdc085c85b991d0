import { describe, expect, test } from "vitest";
import type { LlamaSequence } from "./llama-library.ts";
import { createSequencePool } from "./sequence-pool.ts";

/** A sequence with computed ids and nothing else. */
function holding(ids: readonly number[]): LlamaSequence {
  return { contextTokens: ids } as LlamaSequence;
}

const { signal } = new AbortController();

describe("createSequencePool()", () => {
  test("gives a session its previous sequence", async () => {
    const sequences = [holding([]), holding([])];
    const pool = createSequencePool(sequences);
    const lease = async (sessionId: string) => {
      const { sequence, release } = await pool.lease({ sessionId, ids: [1] }, { signal });
      return { index: sequences.indexOf(sequence), release };
    };
    const [a, b] = [await lease("a"), await lease("b")];
    expect([a.index, b.index]).toEqual([0, 1]);
    b.release({ spoiled: false });
    a.release({ spoiled: false });
    expect((await lease("b")).index).toBe(1);
    expect((await lease("a")).index).toBe(0);
  });

  test("gives a new session the sequence that shares most and loses least", async () => {
    const policy = [1, 2, 3, 4];
    const wish = { sessionId: "new", ids: [...policy, 9] };
    const pick = async (...held: (readonly number[])[]) => {
      const sequences = held.map((ids) => holding(ids));
      const { sequence } = await createSequencePool(sequences).lease(wish, { signal });
      return sequences.indexOf(sequence);
    };
    expect(await pick([], policy)).toBe(1);
    expect(await pick([...policy, 5], [...policy, 9], policy)).toBe(1);
    // Saving four positions is not worth losing five.
    expect(await pick([...policy, 5, 5, 5, 5, 5], [])).toBe(1);
    expect(await pick([...policy, 5, 5, 5], [])).toBe(0);
  });

  test("serves in order of arrival, and drops requests that no longer wait", async () => {
    const pool = createSequencePool([holding([])]);
    const order: string[] = [];
    const held = await pool.lease({ sessionId: "a", ids: [1] }, { signal });
    const leave = new AbortController();
    const wait = async (sessionId: string, options = { signal }): Promise<void> => {
      const { release } = await pool.lease({ sessionId, ids: [1] }, options);
      order.push(sessionId);
      release({ spoiled: false });
    };
    const waits = [wait("b"), wait("gone", leave), wait("c"), wait("a")];
    const reason = new Error("gone");
    leave.abort(reason);
    held.release({ spoiled: false });
    const results = await Promise.allSettled(waits);
    expect(order).toEqual(["b", "c", "a"]);
    expect(results[1]).toEqual({ status: "rejected", reason });
  });

  test("reports a sequence as spoiled until a call succeeds in it", async () => {
    const pool = createSequencePool([holding([1])]);
    const lease = () => pool.lease({ sessionId: "a", ids: [1] }, { signal });
    const seen: boolean[] = [];
    for (const spoiled of [true, true, false, false]) {
      const { isSpoiled, release } = await lease();
      seen.push(isSpoiled);
      release({ spoiled });
    }
    expect(seen).toEqual([false, true, true, false]);
  });

  test("throws the reason of a signal that has aborted", async () => {
    const pool = createSequencePool([holding([])]);
    const reason = new Error("too late");
    const wish = { sessionId: "a", ids: [1] };
    await expect(pool.lease(wish, { signal: AbortSignal.abort(reason) })).rejects.toBe(reason);
    expect((await pool.lease(wish, { signal })).isSpoiled).toBe(false);
  });
});

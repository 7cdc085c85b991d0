import { describe, expect, test } from "vitest";
import { IdText, TextBudget } from "./id-text.ts";

const textOf = (bytes: Uint8Array | undefined): string | undefined =>
  bytes && Buffer.from(bytes).toString("utf8");

const ids = Int32Array.from({ length: 1_000 }, (_, index) => (index * 7_919) % 152_000);

/** Draws the numbers in turn. */
function drawn(...numbers: readonly number[]): () => number {
  let place = 0;
  return () => numbers[place++]!;
}

describe("IdText", () => {
  test("returns the JSON of the first ids, and undefined for fewer than it has", () => {
    const text = new IdText();
    for (const count of [1, 2, 500, 500, 1_000]) {
      expect(textOf(text.of(ids, count))).toBe(ids.subarray(0, count).join(","));
    }
    expect(text.of(ids, 999)).toBeUndefined();
    text.keepAtMost(999);
    expect(textOf(text.of(ids, 3))).toBe(ids.subarray(0, 3).join(","));
  });

  test("returns undefined for a number below 0", () => {
    expect(new IdText().of(Int32Array.of(5, -1), 2)).toBeUndefined();
  });
});

describe("TextBudget", () => {
  test("releases random other texts if there is no room", () => {
    // Two texts of 1,000 ids fit: each has 8,755 bytes.
    const budget = new TextBudget(18_000, drawn(0.4, 0.7));
    const [first, second, third] = [new IdText(budget), new IdText(budget), new IdText(budget)];
    const whole = ids.join(",");
    first.of(ids, 1_000);
    const early = second.of(ids, 1_000);
    third.of(ids, 1_000);
    expect([first.size, second.size, third.size]).toEqual([8_755, 0, 8_755]);
    // A text that was returned before is unchanged, and a released text is written again.
    expect(textOf(early)).toBe(whole);
    expect(textOf(second.of(ids, 1_000))).toBe(whole);
    expect([first.size, second.size, third.size]).toEqual([0, 8_755, 8_755]);
  });

  test("never releases the text that grows, even above the limit", () => {
    const budget = new TextBudget(10, () => 0);
    const text = new IdText(budget);
    expect(textOf(text.of(ids, 1_000))).toBe(ids.join(","));
    expect(text.size).toBe(8_755);
    new IdText(budget).of(ids, 10);
    expect(text.size).toBe(0);
  });
});

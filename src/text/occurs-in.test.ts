import { expect, test } from "vitest";
import { occursIn } from "./occurs-in.ts";

test("occursIn() agrees with includes() on all short texts of two letters", () => {
  const texts = (longest: number): string[] =>
    Array.from({ length: 2 ** (longest + 1) - 1 }, (_, index) =>
      (index + 1).toString(2).slice(1).replaceAll("0", "a").replaceAll("1", "b"),
    );
  for (const text of texts(7)) {
    const wrong = texts(5).filter((part) => occursIn(text, part) !== text.includes(part));
    expect(wrong).toEqual([]);
  }
});

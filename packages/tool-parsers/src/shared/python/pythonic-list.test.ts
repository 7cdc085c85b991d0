import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { findPythonicList, matchesPythonicList } from "./pythonic-list.ts";

const name = String.raw`[a-zA-Z]+\w*`;
const keywords = String.raw`(?:${name}=[^]*,\s*)*`;
const call = (end: string) => String.raw`${name}\(${keywords}(?:${name}=[^]*${end})?\)`;
/** The same pattern for a backtracking engine, which takes exponential time. */
const pattern = String.raw`\[(?:${call(String.raw`\s`)},\s*)*(?:${call(String.raw`\s*`)}\s*)+\]`;

const pieces = ["[", "a(", "b=", "1", ",", " ", ")", "), ", "]", "=", "🦊", "a(b=1)", "a(b=1), "];

function piecesOf(maxLength: number): fc.Arbitrary<string> {
  return fc.array(fc.constantFrom(...pieces), { maxLength }).map((parts) => parts.join(""));
}

/** Texts that are lists of calls, or almost so. */
const text = fc
  .tuple(piecesOf(3), piecesOf(8), piecesOf(3))
  .map(([before, calls, after]) => `${before}[a(b=${calls})]${after}`);

describe("findPythonicList()", () => {
  test("finds the first match of a backtracking engine", () => {
    fc.assert(
      fc.property(text, (source) => {
        const match = new RegExp(pattern, "u").exec(source);
        const span = match === null ? undefined : [match.index, match.index + match[0].length];
        expect(findPythonicList(source)).toEqual(span);
        expect(matchesPythonicList(source)).toBe(new RegExp(`^${pattern}`, "u").test(source));
      }),
      { numRuns: 5_000, seed: 1 },
    );
  });

  test("finds lists among texts of that kind", () => {
    const found = fc.sample(text, { numRuns: 5_000, seed: 1 }).filter(matchesPythonicList);
    expect(found.length).toBeGreaterThan(500);
    expect(found.length).toBeLessThan(4_500);
    expect(found.some((source) => findPythonicList(source)![1] < source.length)).toBe(true);
  });

  test("takes the longest of several ends", () => {
    expect(findPythonicList("x [a(b=1)] y [a(b=2)] z")).toEqual([2, 21]);
    expect(findPythonicList("[a(b=1), c()]]")).toEqual([0, 13]);
    expect(findPythonicList("[a(1)]")).toBeUndefined();
  });
});

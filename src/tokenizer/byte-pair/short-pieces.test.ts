import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { ShortPieces } from "./short-pieces.ts";

/**
 * Similar pieces: in their characters, their lengths, or except for characters of more than a byte.
 */
const pieces = fc.oneof(
  fc.string({ unit: fc.constantFrom("a", "b", " ", "\u00ff", "\u0100", "\u0161"), minLength: 1 }),
  fc.string({ unit: fc.constantFrom("a", "b"), minLength: 14, maxLength: 18 }),
);

const idLists = fc.array(fc.nat(2 ** 24), { minLength: 1, maxLength: 5 });

describe("ShortPieces", () => {
  test("returns a piece's ids or reports that it does not know them", () => {
    const kept = fc.array(fc.tuple(pieces, idLists), { maxLength: 40 });
    fc.assert(
      fc.property(kept, fc.array(pieces), (taught, looked) => {
        const short = new ShortPieces();
        const known = new Map<string, readonly number[]>();
        for (const [piece, ids] of taught) {
          // The same piece always has the same ids.
          const own = known.get(piece) ?? ids;
          known.set(piece, own);
          short.keep(
            own.length === 1 ? (own[0] as number) : own,
            `.${piece}.`,
            1,
            1 + piece.length,
          );
        }
        for (const piece of [...looked, ...known.keys()]) {
          const ids = [7];
          const isKnown = short.append(ids, `"${piece}"`, 1, 1 + piece.length);
          expect(ids).toEqual(isKnown ? [7, ...(known.get(piece) ?? ["none"])] : [7]);
        }
      }),
      { numRuns: 500 },
    );
  });

  test("keeps the last ids of short pieces in Latin letters until it is cleared", () => {
    const short = new ShortPieces();
    const knows = (piece: string): boolean => short.append([], piece, 0, piece.length);
    const pieces = ["a", "é", "0123456789abcdef", "0123456789abcdefg", "ā"];
    const answers = pieces.map((piece) => {
      short.keep([1, 2, 3], piece, 0, piece.length);
      return knows(piece);
    });
    expect(answers).toEqual([true, true, true, false, false]);
    short.keep([1, 2, 3, 4], "long", 0, 4);
    expect(knows("long")).toBe(false);
    short.clear();
    expect(pieces.some(knows)).toBe(false);
  });
});

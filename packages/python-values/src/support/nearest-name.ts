/** The most names that a message lists; with more, it names only the nearest. */
const mostListed = 12;

/**
 * Returns the text of a message about an unknown name: the nearest known name if it resembles the wanted one, or
 * all names if they are few.
 */
export function expectedName(wanted: string, known: readonly string[]): string {
  const nearest = nearestName(wanted, known);
  const all = `expected one of ${known.join(", ")}`;
  if (nearest === undefined) return all;
  const question = `did you mean ${nearest}?`;
  return known.length > mostListed ? question : `${question} (${all})`;
}

/** The known name with the fewest edits, if these are few for its length. */
export function nearestName(wanted: string, known: readonly string[]): string | undefined {
  let nearest: string | undefined;
  let fewest = Math.max(1, Math.floor(wanted.length / 3)) + 1;
  for (const name of known) {
    const strokes = countStrokes(wanted.toLowerCase(), name.toLowerCase(), fewest);
    if (strokes < fewest) [nearest, fewest] = [name, strokes];
  }
  return nearest;
}

/** The number of letters to delete, insert, change, or swap with the next one; counts to `most`. */
function countStrokes(one: string, other: string, most: number): number {
  if (Math.abs(one.length - other.length) >= most || one.length > 100) return most;
  let before: number[] = [];
  let row = Array.from({ length: other.length + 1 }, (_, place) => place);
  for (let i = 1; i <= one.length; i++) {
    const next = [i];
    for (let j = 1; j <= other.length; j++) {
      const isSame = one[i - 1] === other[j - 1];
      const isSwapped =
        i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1];
      next[j] = Math.min(
        row[j]! + 1,
        next[j - 1]! + 1,
        row[j - 1]! + (isSame ? 0 : 1),
        isSwapped ? before[j - 2]! + 1 : Infinity,
      );
    }
    [before, row] = [row, next];
  }
  return row[other.length]!;
}

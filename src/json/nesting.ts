/** Deepest nesting of a row: what nests deeper might not be compared or written again. */
export const maxRowDepth = 500;

/** Deepest nesting of what others put into a row, which has a few levels of its own around that. */
export const maxValueDepth = 400;

/**
 * Whether lists and objects of a JSON text nest deeper than so many levels; nearly every text is told by its
 * brackets alone.
 *
 * @param parse - Gives what the text says. Default: reads it.
 */
export function nestsDeeper(
  text: string,
  depth: number,
  parse: () => unknown = () => JSON.parse(text),
): boolean {
  return mayNest(text, depth) && isDeeper(parse(), depth);
}

function mayNest(text: string, depth: number): boolean {
  let count = 0;
  for (const bracket of ["[", "{"]) {
    for (let at = text.indexOf(bracket); at >= 0; at = text.indexOf(bracket, at + 1)) {
      count += 1;
      if (count > depth) return true;
    }
  }
  return false;
}

/** Tells if lists and objects nest deeper than so many levels. */
export function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((member) => isDeeper(member, depth - 1));
}

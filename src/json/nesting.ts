/** The deepest nesting of a row. A deeper row might not be comparable or writable. */
export const maxRowDepth = 500;

/** The deepest nesting of a value from outside in a row, which adds a few levels of its own. */
export const maxValueDepth = 400;

/**
 * True if lists and objects of a JSON text nest deeper than `depth` levels. Counting brackets is enough for nearly
 * every text.
 *
 * @param parse - Returns the text's value. Default: parses it.
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

/** True if lists and objects nest deeper than `depth` levels. */
export function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((member) => isDeeper(member, depth - 1));
}

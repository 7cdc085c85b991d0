/** Deepest nesting of a row: what nests deeper might not be compared or written again. */
export const maxRowDepth = 500;

/** Deepest nesting of what others put into a row, which has a few levels of its own around that. */
export const maxValueDepth = 400;

/**
 * Whether lists and objects nest deeper than so many levels.
 *
 * @param text - The value as JSON: nearly every value is told by the brackets in it.
 */
export function nestsDeeper(value: unknown, text: string, depth: number): boolean {
  return mayNest(text, depth) && isDeeper(value, depth);
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

function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((member) => isDeeper(member, depth - 1));
}

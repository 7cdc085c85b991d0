/**
 * Returns a pattern that matches any of the literals, the longest first; without literals, one that never matches.
 */
export function literalPattern(literals: Iterable<string>, flags = "gu"): RegExp {
  const alternatives = [...new Set(literals)]
    .sort((left, right) => right.length - left.length)
    .map((literal) => literal.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  return new RegExp(alternatives.length === 0 ? "(?!)" : alternatives.join("|"), flags);
}

/** Where the ends of a text could become part of a literal, in UTF-16 code units. */
export interface Edges {
  /** The text before it could be the end of a literal that began before the text. */
  readonly headEnd: number;
  /** The text from here on could be the beginning of a literal that ends after the text. */
  readonly tailStart: number;
}

/**
 * Finds the ends of a text that a template could complete to a literal, such as a result that ends
 * in `<|im_` before another that begins with `end|>`. White space at the ends is looked through,
 * because templates trim it. Only literals that begin or end with punctuation are considered: the
 * control tokens of every known family do, and words are too common to be suspected.
 *
 * @returns the edges, or `undefined` where the text has none.
 */
export function createEdgeFinder(literals: readonly string[]): (text: string) => Edges | undefined {
  const heads = new Set<string>();
  const tails = new Set<string>();
  const bodies = literals.join("\n");
  let longest = 0;
  for (const literal of literals) {
    longest = Math.max(longest, literal.length - 1);
    for (let length = 1; length < literal.length; length++) {
      if (isPunctuation(literal.at(-1))) heads.add(literal.slice(-length));
      if (isPunctuation(literal[0])) tails.add(literal.slice(0, length));
    }
  }
  const lastUnits = new Set([...heads].map((head) => head.at(-1)));
  const firstUnits = new Set([...tails].map((tail) => tail[0]));

  return (text) => {
    const start = text.length - text.trimStart().length;
    const end = text.trimEnd().length;
    if (start >= end) return undefined;
    if (end - start <= longest && bodies.includes(text.slice(start, end))) {
      return { headEnd: end, tailStart: end };
    }
    let headEnd = 0;
    for (let at = Math.min(end, start + longest); at > start && headEnd === 0; at--) {
      if (lastUnits.has(text[at - 1]) && heads.has(text.slice(start, at))) headEnd = at;
    }
    let tailStart = text.length;
    for (let at = Math.max(start, end - longest); at < end && tailStart === text.length; at++) {
      if (firstUnits.has(text[at]) && tails.has(text.slice(at, end))) tailStart = at;
    }
    return headEnd === 0 && tailStart === text.length
      ? undefined
      : { headEnd, tailStart: Math.max(headEnd, tailStart) };
  };
}

function isPunctuation(unit: string | undefined): boolean {
  return unit !== undefined && !/[\p{L}\p{N}\s]/u.test(unit);
}

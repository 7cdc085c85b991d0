import { pythonLstrip, pythonRstrip } from "../../../packages/python-values/src/text/strip.ts";

/**
 * The ends of a text that could become part of a literal, in UTF-16 code units, without white space at the ends. An
 * empty range could not.
 */
interface Edges {
  /** Could be the end of a literal that starts before the text. */
  readonly head: readonly [start: number, end: number];
  /** Could be the start of a literal that ends after the text. */
  readonly tail: readonly [start: number, end: number];
}

/**
 * Finds the ends of a text that a template could complete to a literal, such as a result that ends in `<|im_`
 * before another that begins with `end|>`. White space at the ends is skipped, because templates trim it. Only
 * literals that begin or end with punctuation count: the control tokens of every known family do, and words are too
 * common.
 *
 * @returns the edges, or `undefined` if the text has none.
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
    const start = text.length - pythonLstrip(text).length;
    const end = pythonRstrip(text).length;
    if (start >= end) return undefined;
    if (end - start <= longest && bodies.includes(text.slice(start, end))) {
      return { head: [start, end], tail: [end, end] };
    }
    let headEnd = start;
    for (let at = Math.min(end, start + longest); at > start && headEnd === start; at--) {
      if (lastUnits.has(text[at - 1]) && heads.has(text.slice(start, at))) headEnd = at;
    }
    let tailStart = end;
    for (let at = Math.max(headEnd, end - longest); at < end && tailStart === end; at++) {
      if (firstUnits.has(text[at]) && tails.has(text.slice(at, end))) tailStart = at;
    }
    if (headEnd === start && tailStart === end) return undefined;
    return { head: [start, headEnd], tail: [tailStart, end] };
  };
}

function isPunctuation(unit: string | undefined): boolean {
  return unit !== undefined && !/[\p{L}\p{N}\s]/u.test(unit);
}

import { foldCase } from "./fold-case.ts";

/** A match of a search: the tokens from `start` up to but not including `end`. */
export interface TokenMatch {
  readonly start: number;
  readonly end: number;
}

/** The tokens to search. */
interface SearchedTokens {
  readonly tokenCount: number;
  readonly ids: Int32Array;
  textAt(index: number): string;
}

/** Maximum number of matches that are returned. Further ones are only counted. */
const maxMatches = 10_000;

/** The result of a search. */
export interface SearchResult {
  readonly matches: readonly TokenMatch[];
  /** The number of all matches, including those beyond `maxMatches`. */
  readonly count: number;
}

const noResult: SearchResult = { matches: [], count: 0 };

/**
 * Finds a text across token boundaries, ignoring case. A query of `#` and ids, such as `#2938 198`,
 * finds consecutive ids.
 */
export function searchTokens(tokens: SearchedTokens, query: string): SearchResult {
  if (query === "") return noResult;
  if (/^#\s*\d[\d\s,]*$/.test(query)) return searchIds(tokens, query.match(/\d+/g)!.map(Number));
  return searchText(tokens, query);
}

function searchIds({ ids, tokenCount }: SearchedTokens, wanted: readonly number[]): SearchResult {
  const matches: TokenMatch[] = [];
  let count = 0;
  for (let start = 0; start + wanted.length <= tokenCount; start++) {
    if (!wanted.every((id, offset) => ids[start + offset] === id)) continue;
    count++;
    if (matches.length < maxMatches) matches.push({ start, end: start + wanted.length });
  }
  return { matches, count };
}

function searchText(tokens: SearchedTokens, query: string): SearchResult {
  const parts: string[] = [];
  const ends = new Uint32Array(tokens.tokenCount);
  let length = 0;
  for (let index = 0; index < tokens.tokenCount; index++) {
    const text = foldCase(tokens.textAt(index));
    parts.push(text);
    length += text.length;
    ends[index] = length;
  }
  const text = parts.join("");
  const wanted = foldCase(query);
  const matches: TokenMatch[] = [];
  let count = 0;
  let token = 0;
  for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
    count++;
    if (matches.length >= maxMatches) continue;
    while (ends[token]! <= at) token++;
    let end = token;
    while (ends[end]! < at + wanted.length) end++;
    matches.push({ start: token, end: end + 1 });
  }
  return { matches, count };
}

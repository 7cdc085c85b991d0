import { isPythonSpace } from "../../../../python-values/src/index.ts";
import {
  compileLinear,
  optional,
  repeat,
  repeatOnce,
  sequence,
  type Pattern,
} from "../text/linear-pattern.ts";

const any: Pattern = { type: "any" };
const space: Pattern = { type: "one", accepts: isPythonSpace };
const letter: Pattern = { type: "one", accepts: isLetter };
const word: Pattern = { type: "one", accepts: isWord };
const name = sequence(repeatOnce(letter), repeat(word));
const keyword = sequence(name, "=", repeat(any));
const keywordThenComma = sequence(keyword, ",", repeat(space));
const callThenComma = sequence(
  sequence(name, "(", repeat(keywordThenComma), optional(sequence(keyword, space)), ")"),
  sequence(",", repeat(space)),
);
const lastCall = sequence(
  sequence(name, "(", repeat(keywordThenComma), optional(sequence(keyword, repeat(space))), ")"),
  repeat(space),
);

/**
 * The engines' pattern for a list of calls. Python's own engine takes exponential time for the pattern; this matcher
 * finds the same match in linear time.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/pythonic_detector.py`, and vllm-project/vllm,
 * `vllm/tool_parsers/pythonic_tool_parser.py`.
 */
const listMatcher = compileLinear(sequence("[", repeat(callThenComma), repeatOnce(lastCall), "]"));

/** Finds a possible list of calls in the text. */
export function findPythonicList(text: string): readonly [start: number, end: number] | undefined {
  return listMatcher.search(text, "[");
}

/** True if the text begins with a possible list of calls. */
export function matchesPythonicList(text: string): boolean {
  return listMatcher.matchesAtStart(text);
}

function isLetter(codePoint: number): boolean {
  return (codePoint >= 0x61 && codePoint <= 0x7a) || (codePoint >= 0x41 && codePoint <= 0x5a);
}

function isWord(codePoint: number): boolean {
  if (codePoint > 0x7f) return /[\p{L}\p{N}_]/u.test(String.fromCodePoint(codePoint));
  const isDigit = codePoint >= 0x30 && codePoint <= 0x39;
  return isLetter(codePoint) || isDigit || codePoint === 0x5f;
}

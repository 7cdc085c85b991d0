import { pythonLstrip, pythonRstrip } from "../../../packages/python-values/src/text/strip.ts";
import type { PyValue } from "../../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../../packages/python-values/src/value.ts";
import { createEdgeFinder } from "./literal-edges.ts";
import { literalPattern } from "./literal-pattern.ts";
import { mapStrings, someString } from "../python-strings.ts";
import type { Seal } from "./seal.ts";
import { sealDisguise, sealEdge, sealLiteral } from "./seal.ts";

/** Finds and marks one set of literals in values. */
interface LiteralSealer {
  /** True if any string of the value contains a complete literal, or could become one. */
  isSuspect(value: PyValue): boolean;
  /** The complete literals in the strings of the value. */
  literalsIn(value: PyValue): ReadonlySet<string>;
  /** True if any string of a message's content contains a literal or could become part of one. */
  isSuspectContent(value: PyValue): boolean;
  /**
   * Marks complete literals in a value, and text that the tokenizer could normalise to a literal.
   */
  seal(value: PyValue, seal: Seal): PyValue;
  /**
   * Marks literals as `seal()` does, and also text that could become part of a literal next to the
   * template's own text.
   */
  sealContent(value: PyValue, seal: Seal): PyValue;
}

/**
 * Makes the sealer of a set of literals.
 *
 * @param mayDisguise - True if a text could become a literal without spelling it.
 */
export function createLiteralSealer(
  literals: readonly string[],
  mayDisguise: (text: string) => boolean,
): LiteralSealer {
  const pattern = literalPattern(literals);
  const findEdges = createEdgeFinder(literals);
  const isSuspectText = (text: string): boolean => text.search(pattern) >= 0 || mayDisguise(text);
  const sealLiterals = (text: string, seal: Seal): string => {
    const sealed = new Map<string, string>();
    return text.replace(pattern, (literal) => {
      const marked = sealed.get(literal) ?? sealLiteral(literal, seal);
      sealed.set(literal, marked);
      return marked;
    });
  };

  /** Marks all of the text except white space at its ends, which templates trim. */
  function sealDisguises(text: string, seal: Seal): string {
    const start = text.length - pythonLstrip(text).length;
    const end = Math.max(start, pythonRstrip(text).length);
    let sealed = text.slice(0, start);
    let from = start;
    for (const { 0: literal, index } of text.slice(0, end).matchAll(pattern)) {
      sealed += sealDisguise(text.slice(from, Math.max(from, index)), seal);
      sealed += sealLiteral(literal, seal);
      from = index + literal.length;
    }
    return sealed + sealDisguise(text.slice(from, end), seal) + text.slice(end);
  }

  function sealWhole(text: string, seal: Seal): string {
    return mayDisguise(text) ? sealDisguises(text, seal) : sealLiterals(text, seal);
  }

  function sealWithEdges(text: string, seal: Seal): string {
    const edges = findEdges(text);
    if (edges === undefined || mayDisguise(text)) return sealWhole(text, seal);
    const { head, tail } = edges;
    return (
      text.slice(0, head[0]) +
      sealEdge(text.slice(...head), seal) +
      sealLiterals(text.slice(head[1], tail[0]), seal) +
      sealEdge(text.slice(...tail), seal) +
      text.slice(tail[1])
    );
  }

  function isSuspectContent(value: PyValue): boolean {
    if (typeof value === "string") return isSuspectText(value) || findEdges(value) !== undefined;
    if (isPyList(value)) return value.some(isSuspectContent);
    if (!isPyDict(value)) return false;
    return [...value].some(([key, member]) => key !== "type" && isSuspectContent(member));
  }

  function sealContent(value: PyValue, seal: Seal): PyValue {
    if (typeof value === "string") return sealWithEdges(value, seal);
    if (isPyList(value)) return value.map((item) => sealContent(item, seal));
    if (!isPyDict(value)) return value;
    // Templates compare the type of a part with a word, so types must stay unchanged.
    return new Map(
      [...value].map(([key, member]) => [key, key === "type" ? member : sealContent(member, seal)]),
    );
  }

  function literalsIn(value: PyValue): ReadonlySet<string> {
    const found = new Set<string>();
    someString(value, (text) => {
      for (const [literal] of text.matchAll(pattern)) found.add(literal);
      return false;
    });
    return found;
  }

  return {
    isSuspect: (value) => someString(value, isSuspectText),
    literalsIn,
    isSuspectContent,
    seal: (value, seal) => mapStrings(value, (text) => sealWhole(text, seal)),
    sealContent,
  };
}

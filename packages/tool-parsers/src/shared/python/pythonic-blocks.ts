import type { PyValue } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { indexesOf } from "../text/indexes-of.ts";
import { catchPython } from "./python-catch.ts";
import { readPythonicArgument, type ArgumentRules } from "./pythonic-argument.ts";
import { parseExpression, type Expression } from "../python-source/expression.ts";
import { malformed, unclosed } from "../tags/tag-blocks.ts";
import { divideSpan } from "../tags/between-tags.ts";

/** Matches the possible start of a list of calls: a bracket, a name and an opening parenthesis. */
const listStart = /\[\s{0,64}[A-Za-z_][\w.]{0,128}\(/g;

/** Finds lists of Python calls in a text. A list ends with its closing bracket outside of strings. */
export function findPythonicBlocks(text: string, rules: ArgumentRules): Block[] {
  const starts = [...text.matchAll(listStart)].map(({ index }) => index);
  const brackets = new BracketMatcher(text);
  const blocks: Block[] = [];
  let position = 0;
  for (const [index, start] of starts.entries()) {
    if (start < position) continue;
    const end = brackets.endOf(start);
    const span = [start, end ?? starts[index + 1] ?? text.length] as const;
    const source = text.slice(...span);
    if (end === undefined) blocks.push({ span, problem: unclosed("]") });
    else blocks.push(...readPythonicList(span, { source, sourceStart: start }, rules));
    position = span[1];
  }
  return blocks;
}

/** Finds closing brackets. No part of the text is scanned twice. */
class BracketMatcher {
  readonly #text: string;
  readonly #ends = new Map<number, number>();
  #scannedTo = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /**
   * The place after the bracket that closes the one at `start`. Places must be requested in
   * ascending order.
   */
  endOf(start: number): number | undefined {
    if (start >= this.#scannedTo) this.#scan(start);
    return this.#ends.get(start);
  }

  /** Scans from an opening bracket until all brackets are closed, or a string is broken. */
  #scan(start: number): void {
    const pattern = /["'[\](){}]|\\/g;
    pattern.lastIndex = start;
    const open: number[] = [];
    for (let match = pattern.exec(this.#text); match !== null; match = pattern.exec(this.#text)) {
      const [mark] = match;
      this.#scannedTo = pattern.lastIndex;
      if (mark === "\\") {
        pattern.lastIndex += 1;
      } else if (mark === '"' || mark === "'") {
        const close = findStringEnd(this.#text, match.index);
        if (close === undefined) return;
        pattern.lastIndex = close;
      } else if ("[({".includes(mark)) {
        open.push(match.index);
      } else {
        this.#ends.set(open.pop() ?? start, match.index + 1);
        if (open.length === 0) return;
      }
    }
    this.#scannedTo = this.#text.length;
  }
}

function findStringEnd(text: string, start: number): number | undefined {
  const quote = text[start] ?? "";
  const stop = new RegExp(`\\\\|${quote}|\\n`, "g");
  stop.lastIndex = start + 1;
  for (let match = stop.exec(text); match !== null; match = stop.exec(text)) {
    if (match[0] === quote) return match.index + 1;
    if (match[0] === "\n") return undefined;
    stop.lastIndex += 1;
  }
  return undefined;
}

/**
 * Reads the blocks of a source that starts at `sourceStart` of the text: a list of calls, or one
 * call. Each call is a block. The calls of a list divide its span: the first block starts with the
 * span, the others with their name.
 */
export function readPythonicList(
  span: Block["span"],
  { source, sourceStart }: { readonly source: string; readonly sourceStart: number },
  rules: ArgumentRules,
): Block[] {
  const expression = source.trim();
  const node = catchPython(() => parseExpression(expression));
  if (node === undefined) {
    return [{ span, problem: malformed("the calls are not valid Python") }];
  }
  if (node.type !== "list") return [readCall(span, node, rules)];
  if (node.items.length === 0) return [{ span, problem: malformed("the list holds no call") }];
  const first = sourceStart + source.indexOf(expression);
  const starts = placesWithReturns(expression, node.starts).map((start) => first + start);
  return divideSpan(span, starts).map((part, index) =>
    readCall(part, node.items[index] as Expression, rules),
  );
}

/** Converts places that count `\r\n` as one character to places of the source. */
function placesWithReturns(source: string, places: readonly number[]): number[] {
  const returns = indexesOf(source, "\r\n");
  let passed = 0;
  return places.map((place) => {
    while ((returns[passed] ?? Infinity) < place + passed) passed += 1;
    return place + passed;
  });
}

function readCall(span: Block["span"], node: Expression, rules: ArgumentRules): Block {
  const name = node.type === "call" ? dottedName(node.callee) : undefined;
  if (node.type !== "call" || name === undefined) {
    return { span, problem: malformed("expected a call such as name(key=value)") };
  }
  const argumentValue = catchPython(() => {
    const values = new Map<string, PyValue>();
    for (const { name: key, value } of node.keywords) {
      if (key !== undefined) values.set(key, readPythonicArgument(value, rules));
    }
    return values;
  });
  const base = { span, name };
  if (argumentValue === undefined)
    return { ...base, problem: malformed("an argument is not a literal") };
  if (node.hasPositional) {
    return { ...base, argumentValue, problem: malformed("an argument has no name") };
  }
  return { ...base, argumentValue };
}

/** The dotted name of a callee; `undefined` if it is not a name. */
export function dottedName(node: Expression): string | undefined {
  const parts: string[] = [];
  let current = node;
  while (current.type === "attribute") {
    parts.push(current.attribute);
    current = current.object;
  }
  return current.type === "name" ? [current.id, ...parts.toReversed()].join(".") : undefined;
}

import { pythonStrip } from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parseFirstStatement, type Expression } from "../../shared/python-source/expression.ts";
import { dropLeadingZeros, escapeControls, renameReserved, splitCalls } from "./lfm2-rewrites.ts";
import { skipPythonSpace } from "../../shared/text/skip-characters.ts";

/** A statement that was read from a text or from a rewrite of the text. */
interface RecoveredStatement {
  readonly statement: Expression | undefined;
  /** True if argument names that Python reserves were renamed. */
  readonly isRenamed: boolean;
}

type Call = Extract<Expression, { type: "call" }>;

/** Maximum number of readings of a broken string that are tried. The limit keeps the time linear. */
const maxReadings = 32;

/**
 * Parses a statement.
 *
 * @returns `undefined` if the text is not Python.
 */
function parse(text: string): { readonly statement: Expression | undefined } | undefined {
  return catchPython(() => ({ statement: parseFirstStatement(text) }), "SyntaxError", "ValueError");
}

/**
 * Reads a statement of Python, or the first rewrite of it that is Python. The rewrites concern
 * leading zeros, control characters and quotes in strings, and reserved names.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/lfm2_detector.py`.
 *
 * @returns `undefined` if no rewrite is Python.
 */
export function recoverStatement(text: string): RecoveredStatement | undefined {
  const plain = parse(text);
  if (plain !== undefined) return { ...plain, isRenamed: false };
  for (const { source, isRenamed } of rewritesOf(text)) {
    const found = parse(source);
    if (found !== undefined) return { ...found, isRenamed };
  }
  return undefined;
}

/**
 * Reads a statement as `recoverStatement()` does, with vLLM's rewrites: reserved names are renamed
 * last.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/lfm2_tool_parser.py`.
 */
export function recoverVllmStatement(text: string): RecoveredStatement | undefined {
  const plain = parse(text);
  if (plain !== undefined) return { ...plain, isRenamed: false };
  const escaped = escapeControls(dropLeadingZeros(text));
  const requoted = requote(escaped, { keepsCalls: false });
  const candidates = requoted === undefined ? [escaped] : [escaped, escapeControls(requoted)];
  const renamed = renameReserved(candidates.at(-1) ?? escaped);
  const sources = renamed === candidates.at(-1) ? candidates : [...candidates, renamed];
  for (const source of sources) {
    const found = parse(source);
    if (found !== undefined) return { ...found, isRenamed: renamed !== candidates.at(-1) };
  }
  return undefined;
}

function* rewritesOf(text: string): Generator<{ source: string; isRenamed: boolean }> {
  const escaped = escapeControls(dropLeadingZeros(text));
  yield { source: escaped, isRenamed: false };
  const requoted = requote(escaped);
  const bases = requoted === undefined ? [escaped] : [escaped, escapeControls(requoted)];
  if (bases[1] !== undefined) yield { source: bases[1], isRenamed: false };
  for (const base of bases) {
    const renamed = renameReserved(base);
    if (renamed === base) continue;
    yield { source: renamed, isRenamed: true };
    const again = requote(renamed);
    if (again !== undefined) yield { source: escapeControls(again), isRenamed: true };
  }
}

/**
 * Reads calls one by one from a block that is not Python as a whole. Of two ways to cut the block,
 * the one that finds more calls wins.
 */
export function salvageCalls(text: string): { readonly call: Call; readonly isRenamed: boolean }[] {
  let best: { call: Call; isRenamed: boolean }[] = [];
  for (const respectsStrings of [true, false]) {
    const segments = splitBlock(text, respectsStrings);
    if (segments.length < 2) continue;
    const calls = segments.flatMap((segment) => {
      const found = recoverStatement(segment);
      if (found?.statement?.type !== "call") return [];
      return [{ call: found.statement, isRenamed: found.isRenamed }];
    });
    if (calls.length > best.length) best = calls;
  }
  return best;
}

function splitBlock(text: string, respectsStrings: boolean): string[] {
  return splitCalls(pythonStrip(text), respectsStrings)
    .map((segment) => pythonStrip(segment))
    .filter((segment) => segment !== "");
}

/**
 * Repairs the first string whose next quote cannot end it (`canEndString()`). The string then ends
 * at a later quote that can, and the quotes before that one are escaped. Returns `undefined` if no
 * string is broken in this way, or if not exactly one end makes the text valid Python.
 */
function requote(text: string, { keepsCalls = true } = {}): string | undefined {
  const broken = findBrokenString(text);
  if (broken === undefined) return undefined;
  const { start, closers } = broken;
  const callCount = splitBlock(text, false).length;
  const winners: string[] = [];
  for (const closer of closers.slice(0, maxReadings)) {
    const candidate =
      text.slice(0, start + 1) + escapeQuotes(text, start, closer) + text.slice(closer);
    const found = parse(escapeControls(candidate));
    if (found === undefined) continue;
    if (keepsCalls && callCount > 1 && countCalls(found.statement) < callCount) continue;
    winners.push(candidate);
  }
  return winners.length === 1 ? winners[0] : undefined;
}

/**
 * Finds the first string that the next quote of its kind cannot end, and the quotes that can end
 * it.
 */
function findBrokenString(text: string): { start: number; closers: number[] } | undefined {
  for (let index = 0; index < text.length; index++) {
    const quote = text[index];
    if (quote !== "'" && quote !== '"') continue;
    const first = nextQuote(text, index + 1, quote);
    if (first === -1) return undefined;
    if (!canEndString(text, first)) {
      const closers: number[] = [];
      for (let place = first; place !== -1; place = nextQuote(text, place + 1, quote)) {
        if (canEndString(text, place)) closers.push(place);
      }
      return { start: index, closers };
    }
    index = first;
  }
  return undefined;
}

function nextQuote(text: string, start: number, quote: string): number {
  let place = start;
  while (place < text.length && text[place] !== quote) place += text[place] === "\\" ? 2 : 1;
  return place < text.length ? place : -1;
}

/** True if a quote can end a string: a comma, a colon or a closing bracket follows. */
function canEndString(text: string, place: number): boolean {
  const next = skipPythonSpace(text, place + 1);
  return next < text.length && ",)]}:".includes(text[next] ?? "x");
}

/** The inside of a string, with a backslash before each unescaped quote. */
function escapeQuotes(text: string, start: number, end: number): string {
  const quote = text[start] ?? "";
  return text
    .slice(start + 1, end)
    .replace(/(\\*)(['"])/g, (whole, slashes: string, character: string) =>
      character !== quote || slashes.length % 2 === 1 ? whole : `${slashes}\\${character}`,
    );
}

function countCalls(statement: Expression | undefined): number {
  if (statement?.type === "list") return statement.items.filter(isCall).length;
  return statement?.type === "call" ? 1 : 0;
}

function isCall({ type }: Expression): boolean {
  return type === "call";
}

import { appendToList } from "../../python-values/src/support/index.ts";
import { isPyDict, parsePythonJson, type PyValue } from "../../python-values/src/index.ts";
import { catchPython } from "./shared/python/python-catch.ts";
import { findReasoningSpans } from "./reasoning-spans.ts";
import { findSchemaMismatches } from "./schema-mismatch.ts";
import { schemaOfTool, type ParseContext } from "./parse-context.ts";
import type { Attempt, AttemptStatus, CompatCall, CompatResult } from "./tool-call-parser.ts";
import { writeJson } from "./shared/json/write-json.ts";

/** A finding about an attempt. */
export interface Diagnostic {
  readonly status: AttemptStatus;
  readonly detail: string;
}

/** A part of the text that calls a tool or tries to, as a grammar finds it. */
export interface Block {
  /** The block's place in the text, in UTF-16 code units, end exclusive. Blocks never overlap. */
  readonly span: readonly [start: number, end: number];
  /** The reason why the block is not a well-formed call of this format. Absent for a well-formed call. */
  readonly problem?: Diagnostic;
  /** The tool's name, if the block contains one. */
  readonly name?: string;
  /** The arguments, if they can be read. */
  readonly argumentValue?: PyValue;
  /** The arguments as the engine reports them. Default: the JSON of `argumentValue`. */
  readonly argumentsText?: string;
  /** The id that the model gave the call. */
  readonly id?: string;
  /** Further findings of the grammar. */
  readonly notes?: readonly Diagnostic[];
}

/** The facts about a turn that decide the status of its attempts. */
interface TurnFacts {
  readonly text: string;
  readonly context: ParseContext;
  readonly compat: CompatResult;
  /** True if calls inside the reasoning count. */
  readonly readsReasoning: boolean;
  /**
   * Matches text that may follow a call without being part of the answer, such as an end marker. The pattern has the
   * flag `g`.
   */
  readonly closers: RegExp | undefined;
  readonly finishReason: "stop" | "length" | undefined;
}

/** Maximum number of tool names or paths that one diagnostic lists. */
const MAX_LISTED = 20;

/**
 * Converts the blocks of a turn to attempts, each with its status. The first diagnostic explains a status other than
 * `ok`; the others follow in the order of `AttemptStatus`.
 */
export function toAttempts(blocks: readonly Block[], turn: TurnFacts): Attempt[] {
  if (blocks.length === 0) return [];
  const spans = blocks.map(({ span }) => span);
  const reasoning = turn.readsReasoning ? [] : findReasoningSpans(turn.text, spans);
  const reported = new ReportedCalls(turn);
  const seen = new Set<string>();
  let reasoningIndex = 0;
  return blocks.map((block, index) => {
    const [start] = block.span;
    while ((reasoning[reasoningIndex]?.[1] ?? Infinity) <= start) reasoningIndex += 1;
    const inReasoning = (reasoning[reasoningIndex]?.[0] ?? Infinity) <= start;
    const primary = judge(block, turn, inReasoning);
    const notes = block.notes === undefined ? [] : [...block.notes];
    const written = block.argumentsText ?? writeArguments(block.argumentValue);
    const reportedText =
      primary === undefined ? reported.take(block.name ?? "", written) : undefined;
    // vLLM's parser for Cohere reports an empty text for a call without arguments.
    const argumentsText = reportedText === "" ? written : (reportedText ?? written);
    if (primary === undefined) {
      const mismatch = noteArguments(
        block.name,
        valueOf(block, argumentsText, written),
        turn.context,
      );
      if (mismatch !== undefined) notes.push(mismatch);
      const key = keyOf(block.name, argumentsText);
      if (seen.has(key)) notes.push(duplicate);
      seen.add(key);
      if (reportedText === undefined) notes.push(unreported);
    }
    const isCall = block.problem?.status !== "marker-only";
    if (isCall && hasTextAfter(block, blocks[index + 1], turn)) notes.push(trailingText);
    // This runs for each call of each turn, and spreading one object into another is slow here.
    const { status, diagnostics } = finish(primary, notes, turn);
    const raw = turn.text.slice(start, block.span[1]);
    const attempt: Writable<Attempt> = { status, diagnostics, raw, span: block.span };
    if (block.name !== undefined) attempt.name = block.name;
    if (argumentsText !== undefined) attempt.argumentsText = argumentsText;
    if (block.id !== undefined) attempt.id = block.id;
    return attempt;
  });
}

type Writable<Type> = { -readonly [Key in keyof Type]: Type[Key] };

function hasTextAfter({ span }: Block, next: Block | undefined, turn: TurnFacts): boolean {
  const { text, closers } = turn;
  if (span[1] === text.length) return false;
  const gap = text.slice(span[1], next?.span[0]);
  return (closers === undefined ? gap : gap.replaceAll(closers, "")).trim() !== "";
}

const duplicate: Diagnostic = {
  status: "duplicate-call",
  detail: "the same tool was called with the same arguments before in this turn",
};

const unreported: Diagnostic = {
  status: "malformed-structure",
  detail: "the engine's parser reports no such call from this text",
};

const trailingText: Diagnostic = {
  status: "trailing-text",
  detail: "text follows the call",
};

/** Returns the reason why the attempt cannot be executed, or `undefined` if it can. */
function judge(block: Block, turn: TurnFacts, inReasoning: boolean): Diagnostic | undefined {
  if (inReasoning) {
    return { status: "in-reasoning", detail: "the call stands inside the reasoning" };
  }
  if (block.problem !== undefined) return block.problem;
  if (block.name === undefined || block.name === "") {
    return { status: "missing-name", detail: "the call names no tool" };
  }
  if (!turn.context.toolPositions.has(block.name)) return unknownTool(block.name, turn.context);
  return block.argumentValue === undefined ? undefined : judgeArguments(block.argumentValue);
}

function unknownTool(name: string, context: ParseContext): Diagnostic {
  const names = [...context.toolPositions.keys()];
  const more = names.length > MAX_LISTED ? ` and ${names.length - MAX_LISTED} more` : "";
  const listed = names.slice(0, MAX_LISTED).join(", ");
  return {
    status: "unknown-tool",
    detail: `no tool is named ${JSON.stringify(name)}; the tools are: ${listed}${more}`,
  };
}

function judgeArguments(value: PyValue): Diagnostic | undefined {
  if (isPyDict(value)) return undefined;
  if (typeof value === "string" && isPyDict(catchPython(() => parsePythonJson(value)))) {
    return {
      status: "double-encoded-arguments",
      detail: "the arguments are a string that holds JSON, expected a JSON object",
    };
  }
  return { status: "non-object-arguments", detail: "the arguments are not a JSON object" };
}

function noteArguments(
  name: string | undefined,
  argumentValue: PyValue | undefined,
  context: ParseContext,
): Diagnostic | undefined {
  const schema = name === undefined ? undefined : schemaOfTool(context, name);
  if (schema === undefined || !isPyDict(argumentValue)) return undefined;
  const { mismatches, unchecked } = findSchemaMismatches(schema, argumentValue);
  if (unchecked !== undefined) {
    const detail = `the arguments were not checked against the tool's schema: ${unchecked}`;
    return { status: "schema-unchecked", detail };
  }
  if (mismatches.length === 0) return undefined;
  return { status: "schema-mismatch", detail: mismatches.slice(0, MAX_LISTED).join("; ") };
}

/** The order of further diagnostics. */
const diagnosticOrder: readonly AttemptStatus[] = [
  "ok",
  "invalid-json",
  "unclosed-block",
  "missing-name",
  "malformed-structure",
  "unknown-tool",
  "non-object-arguments",
  "schema-mismatch",
  "schema-unchecked",
  "duplicate-call",
  "in-reasoning",
  "trailing-text",
  "marker-only",
  "double-encoded-arguments",
  "coerced",
  "truncated-by-length",
];

function finish(
  primary: Diagnostic | undefined,
  notes: readonly Diagnostic[],
  turn: TurnFacts,
): Pick<Attempt, "status" | "diagnostics"> {
  const rank = ({ status }: Diagnostic): number => diagnosticOrder.indexOf(status);
  const ordered =
    notes.length < 2 ? notes : notes.toSorted((left, right) => rank(left) - rank(right));
  const own = primary === undefined ? ordered : [primary, ...ordered];
  if (turn.finishReason !== "length") return { status: primary?.status ?? "ok", diagnostics: own };
  const detail = "the turn was cut off by the token limit; none of its calls is executed";
  return {
    status: "truncated-by-length",
    diagnostics: [{ status: "truncated-by-length", detail }, ...own],
  };
}

function writeArguments(value: PyValue | undefined): string | undefined {
  if (value === undefined) return undefined;
  return catchPython(() => writeJson(value));
}

/**
 * Returns the value of the arguments that the engine reports.
 *
 * @param written - The arguments as the block contains them.
 */
function valueOf(
  { argumentValue }: Block,
  argumentsText: string | undefined,
  written: string | undefined,
): PyValue | undefined {
  if (argumentsText === undefined || written === argumentsText) return argumentValue;
  return catchPython(() => parsePythonJson(argumentsText));
}

/** The calls that the engine reports. Each call is that of one block. */
class ReportedCalls {
  readonly #calls: readonly CompatCall[];
  /** The number of calls that were taken from the front. Most turns take all calls in order. */
  #takenCount = 0;
  /** The remaining calls. Set once a call was taken out of order. */
  #rest: RemainingCalls | undefined;
  /** True if the engine's arguments may differ from those that the grammar reads. */
  readonly #isLoose: boolean;

  constructor({ compat, context }: TurnFacts) {
    this.#calls = compat.calls;
    this.#isLoose = context.dialect !== "sglang";
  }

  /**
   * Takes the call that the engine reports for a block and returns its arguments; `undefined` if it
   * reports none.
   */
  take(name: string, argumentsText: string | undefined): string | undefined {
    if (this.#rest === undefined) {
      const next = this.#calls[this.#takenCount];
      if (next !== undefined && next.name === name && next.argumentsText === argumentsText) {
        this.#takenCount += 1;
        return argumentsText;
      }
      this.#rest = new RemainingCalls(this.#calls, this.#takenCount);
    }
    if (argumentsText !== undefined && this.#rest.take(name, argumentsText)) return argumentsText;
    return this.#isLoose ? this.#rest.takeAny(name) : undefined;
  }
}

/** The calls that remain once a call was taken out of order. They can be taken in any order. */
class RemainingCalls {
  /** The number of remaining calls, by name and arguments. */
  readonly #counts = new Map<string, number>();
  /**
   * The arguments of the calls to each tool, last call first. Calls that were taken by their
   * arguments stay in the list.
   */
  readonly #byName = new Map<string, string[]>();

  /** @param takenCount - The count of calls already taken from the front. */
  constructor(calls: readonly CompatCall[], takenCount: number) {
    for (const { name, argumentsText } of calls.toReversed()) {
      const key = keyOf(name, argumentsText);
      this.#counts.set(key, (this.#counts.get(key) ?? 0) + 1);
      appendToList(this.#byName, name, argumentsText);
    }
    for (const { name, argumentsText } of calls.slice(0, takenCount))
      this.take(name, argumentsText);
  }

  /** Takes a call with exactly these arguments. Returns false if none remains. */
  take(name: string, argumentsText: string): boolean {
    const key = keyOf(name, argumentsText);
    const count = this.#counts.get(key) ?? 0;
    if (count > 0) this.#counts.set(key, count - 1);
    return count > 0;
  }

  /** Takes the first remaining call to the tool and returns its arguments. */
  takeAny(name: string): string | undefined {
    const left = this.#byName.get(name) ?? [];
    for (let text = left.pop(); text !== undefined; text = left.pop()) {
      if (this.take(name, text)) return text;
    }
    return undefined;
  }
}

function keyOf(name: string | undefined, argumentsText: string | undefined): string {
  return `${name}\u0000${argumentsText}`;
}

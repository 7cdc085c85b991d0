import type { PyValue } from "../python/value.ts";
import { isPyDict } from "../python/value.ts";
import { stringifyPythonJson } from "../python/json-stringify.ts";
import { parsePythonJson } from "../python/json-parse.ts";
import { catchPython } from "./python-catch.ts";
import { findReasoningSpans } from "./reasoning-spans.ts";
import { findSchemaMismatches } from "./schema-mismatch.ts";
import type { ParseContext } from "./parse-context.ts";
import { schemaOfTool } from "./parse-context.ts";
import type { Attempt, AttemptStatus, CompatResult } from "./tool-call-parser.ts";

/** Something to say about an attempt. */
export interface Diagnostic {
  readonly status: AttemptStatus;
  readonly detail: string;
}

/** A block of the text that calls a tool or tries to, as a grammar finds it. */
export interface Block {
  /** UTF-16 code units, end exclusive. Blocks never overlap. */
  readonly span: readonly [start: number, end: number];
  /** Why the block is not a well-formed call of this format; absent where it is one. */
  readonly problem?: Diagnostic;
  /** The tool's name, where the block holds one. */
  readonly name?: string;
  /** The arguments, where they can be read. */
  readonly argumentValue?: PyValue;
  /** The arguments as the engine would hand them on, where they are not the JSON of the value. */
  readonly argumentsText?: string;
  /** The id that the model gave the call. */
  readonly id?: string;
  /** Further things that the grammar has seen. */
  readonly notes?: readonly Diagnostic[];
}

/** What the attempts of a turn are judged against. */
export interface TurnFacts {
  readonly text: string;
  readonly context: ParseContext;
  readonly compat: CompatResult;
  /** Whether calls inside the reasoning count. */
  readonly readsReasoning: boolean;
  readonly finishReason: "stop" | "length" | undefined;
}

/** The longest list of tool names or paths that a diagnostic spells out. */
const MAX_LISTED = 20;

/**
 * Judges the blocks of a turn. The first diagnostic explains a status that is not `ok`; the others
 * follow in the order of `AttemptStatus`.
 */
export function toAttempts(blocks: readonly Block[], turn: TurnFacts): Attempt[] {
  const spans = blocks.map(({ span }) => span);
  const reasoning = turn.readsReasoning ? [] : findReasoningSpans(turn.text, spans);
  const reported = countCalls(turn.compat);
  const seen = new Set<string>();
  return blocks.map((block, index) => {
    const end = blocks[index + 1]?.span[0] ?? turn.text.length;
    const argumentsText = block.argumentsText ?? writeArguments(block.argumentValue);
    const inReasoning = reasoning.some(([from, to]) => block.span[0] >= from && block.span[0] < to);
    const primary = judge(block, turn, inReasoning);
    const notes = [...(block.notes ?? [])];
    if (primary === undefined) {
      notes.push(...noteArguments(block, turn.context));
      const key = `${block.name}\u0000${argumentsText}`;
      if (seen.has(key)) notes.push(duplicate);
      seen.add(key);
      if (!takeReported(reported, key)) notes.push(unreported);
    }
    const trailing = turn.text.slice(block.span[1], end).trim();
    if (trailing !== "" && block.problem?.status !== "marker-only") notes.push(trailingText);
    return {
      ...finish(primary, notes, turn),
      raw: turn.text.slice(...block.span),
      span: block.span,
      ...(block.name === undefined ? {} : { name: block.name }),
      ...(argumentsText === undefined ? {} : { argumentsText }),
      ...(block.id === undefined ? {} : { id: block.id }),
    };
  });
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

/** Why the attempt cannot be executed, or `undefined` where it can. */
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
  return { status: "non-object-arguments", detail: "the arguments are no JSON object" };
}

function noteArguments({ name, argumentValue }: Block, context: ParseContext): Diagnostic[] {
  const schema = name === undefined ? undefined : schemaOfTool(context, name);
  if (schema === undefined || !isPyDict(argumentValue)) return [];
  const mismatches = findSchemaMismatches(schema, argumentValue);
  if (mismatches.length === 0) return [];
  return [{ status: "schema-mismatch", detail: mismatches.slice(0, MAX_LISTED).join("; ") }];
}

/** In which order further diagnostics stand. */
const diagnosticOrder: readonly AttemptStatus[] = [
  "ok",
  "invalid-json",
  "unclosed-block",
  "missing-name",
  "malformed-structure",
  "unknown-tool",
  "non-object-arguments",
  "schema-mismatch",
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
  const ordered = notes.toSorted((left, right) => rank(left) - rank(right));
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
  return catchPython(() => stringifyPythonJson(value, { ensureAscii: false }));
}

function countCalls({ calls }: CompatResult): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { name, argumentsText } of calls) {
    const key = `${name}\u0000${argumentsText}`;
    counts.set(key, (counts.get(key) ?? 0) + 1);
  }
  return counts;
}

function takeReported(counts: Map<string, number>, key: string): boolean {
  const count = counts.get(key) ?? 0;
  if (count === 0) return false;
  counts.set(key, count - 1);
  return true;
}

import type { Attempt, AttemptStatus } from "../parser/tool-call-parser.ts";
import { literalPattern } from "../renderer/guard/literal-pattern.ts";

/** A place in a text: its first character, and the one behind its last. */
export type TextSpan = readonly [start: number, end: number];

/** An attempt to call a tool, as it is kept. JSON-able. */
export interface AttemptPlace {
  readonly status: AttemptStatus;
  /** The tool's name, where the attempt holds one. */
  readonly name?: string;
  /** Place in the turn's text, in UTF-16 code units, end exclusive. */
  readonly span: TextSpan;
  /** What else was found about it, in a fixed order; absent where nothing was. */
  readonly notes?: readonly AttemptStatus[];
}

/** The form of a turn, as against what it says. JSON-able. */
export interface TurnForm {
  /** Every attempt to call a tool, in the order of the text. */
  readonly attempts: readonly AttemptPlace[];
  /** Markup of calls or reasoning is left in what others are shown of the turn. */
  readonly leakedMarkup: boolean;
  /** The reasoning is opened or closed too often, or not closed in a turn that was not cut off. */
  readonly thinkingMalformed: boolean;
}

/** The literals of a format whose reasoning stands between two of them. */
export interface ReasoningMarkup {
  readonly opener: string;
  readonly closer: string;
}

/** What is kept of an attempt. */
export function toAttemptPlace({ status, name, span, diagnostics }: Attempt): AttemptPlace {
  const place = name === undefined ? { status, span } : { status, name, span };
  if (diagnostics.length === 0) return place;
  const notes = [...new Set(diagnostics.map((found) => found.status))].filter(
    (note) => note !== status,
  );
  return notes.length === 0 ? place : { ...place, notes };
}

/** Statuses of attempts that were not meant as calls, or not as calls of this turn. */
const remarks: ReadonlySet<AttemptStatus> = new Set(["in-reasoning", "marker-only"]);

/** Whether the attempt was meant as a call: it is then executed, or refused. */
export function isCall({ status }: Pick<AttemptPlace, "status">): boolean {
  return !remarks.has(status);
}

/** The first attempt that was meant as a call and is none. */
export function findFormError<Place extends Pick<AttemptPlace, "status">>(
  attempts: readonly Place[],
): Place | undefined {
  return attempts.find((attempt) => isCall(attempt) && attempt.status !== "ok");
}

/** Whether one of the literals, or the closing tag that belongs to it, stands in the text. */
export function holdsMarkup(text: string, literals: readonly string[]): boolean {
  return literals.some(
    (literal) => text.includes(literal) || (text.includes("</") && holdsClosing(text, literal)),
  );
}

function holdsClosing(text: string, literal: string): boolean {
  return isTag(literal) && text.includes(`</${literal.slice(1)}`);
}

function isTag(literal: string): boolean {
  return /^<[\w:-]+>$/.test(literal);
}

/**
 * Whether the reasoning of a turn is written as it should be: opened at most once, where the prompt has
 * not opened it already, and closed once. What stands in `calls` was said to a tool.
 */
export function isThinkingMalformed(
  text: string,
  facts: {
    readonly markup: ReasoningMarkup;
    /** Whether the prompt opened the reasoning. */
    readonly opened: boolean;
    readonly finish: "stop" | "length";
    /** In order, without overlap. */
    readonly calls: readonly TextSpan[];
  },
): boolean {
  const { markup, calls } = facts;
  let state: "none" | "open" | "closed" = facts.opened ? "open" : "none";
  let callIndex = 0;
  for (const { 0: literal, index } of text.matchAll(
    literalPattern([markup.opener, markup.closer]),
  )) {
    while ((calls[callIndex]?.[1] ?? Infinity) <= index) callIndex += 1;
    if ((calls[callIndex]?.[0] ?? Infinity) <= index) continue;
    const isOpener = literal === markup.opener;
    if (state !== (isOpener ? "none" : "open")) return true;
    state = isOpener ? "open" : "closed";
  }
  return state === "open" && facts.finish === "stop";
}

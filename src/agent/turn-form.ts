import type { Attempt, AttemptStatus } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { literalPattern } from "../renderer/guard/literal-pattern.ts";

/** A range of a text: the first character and the one after the last. */
export type TextSpan = readonly [start: number, end: number];

/** The record of an attempt to call a tool. JSON-able. */
export interface AttemptPlace {
  readonly status: AttemptStatus;
  /** The tool's name, if the attempt has one. */
  readonly name?: string;
  /** Range in the turn's text, in UTF-16 code units, end exclusive. */
  readonly span: TextSpan;
  /** Further statuses, in a fixed order. Absent if empty. */
  readonly notes?: readonly AttemptStatus[];
}

/** The form of a turn, independent of its content. JSON-able. */
export interface TurnForm {
  /** Every attempt to call a tool, in text order. */
  readonly attempts: readonly AttemptPlace[];
  /** True if the message contains markup of calls or reasoning. */
  readonly leakedMarkup: boolean;
  /**
   * True if the reasoning is opened or closed too often, or not closed in a turn that was not cut
   * off.
   */
  readonly thinkingMalformed: boolean;
}

/** The literals that surround a format's reasoning. */
export interface ReasoningMarkup {
  readonly opener: string;
  readonly closer: string;
}

/** Converts an attempt to its record. */
export function toAttemptPlace({ status, name, span, diagnostics }: Attempt): AttemptPlace {
  const place = name === undefined ? { status, span } : { status, name, span };
  if (diagnostics.length === 0) return place;
  const notes = [...new Set(diagnostics.map((found) => found.status))].filter(
    (note) => note !== status,
  );
  return notes.length === 0 ? place : { ...place, notes };
}

/** Statuses of attempts that were not meant as calls of this turn. */
const remarks: ReadonlySet<AttemptStatus> = new Set(["in-reasoning", "marker-only"]);

/** True if the attempt was meant as a call. It is then executed or refused. */
export function isCall({ status }: Pick<AttemptPlace, "status">): boolean {
  return !remarks.has(status);
}

/** Returns the first attempt that was meant as a call but is malformed. */
export function findFormError<Place extends Pick<AttemptPlace, "status">>(
  attempts: readonly Place[],
): Place | undefined {
  return attempts.find((attempt) => isCall(attempt) && attempt.status !== "ok");
}

/** True if the text contains one of the literals or its closing tag. */
export function containsMarkup(text: string, literals: readonly string[]): boolean {
  return literals.some(
    (literal) =>
      text.includes(literal) || (text.includes("</") && containsClosingTag(text, literal)),
  );
}

function containsClosingTag(text: string, literal: string): boolean {
  return isTag(literal) && text.includes(`</${literal.slice(1)}`);
}

function isTag(literal: string): boolean {
  return /^<[\w:-]+>$/.test(literal);
}

/**
 * Returns true if the reasoning is malformed. A turn, together with its prompt, may open it once. Only
 * an open reasoning may be closed. It must be closed, unless the turn reached its length limit.
 * Literals inside `calls` are arguments of tools and do not count.
 */
export function isThinkingMalformed(
  text: string,
  facts: {
    readonly markup: ReasoningMarkup;
    /** True if the prompt opened the reasoning. */
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

import { listsOf } from "../values/filled-list.ts";

/** The author of a stretch of ids. */
export type SpanKind =
  /** The first prompt of a segment. */
  | "prompt"
  /** The policy: ids exactly as the engine returned them. */
  | "sampled"
  /** The environment: tool results, user lines, and the template's text around them. */
  | "environment"
  /** The close of a turn that the policy did not close itself. */
  | "synthesised-close";

/** A stretch of ids with one author. JSON-able. */
export interface Span {
  readonly kind: SpanKind;
  /** Index of the first id in the segment. */
  readonly start: number;
  /** Index after the last id. */
  readonly end: number;
  /** Index of the turn that sampled the span. Absent for other kinds. */
  readonly turnIndex?: number;
}

const unmasked = listsOf<0 | 1>(0);

/** Returns the loss mask: 1 for each id that the policy sampled, 0 for all others. */
export function lossMask(spans: readonly Span[]): (0 | 1)[] {
  const mask = unmasked(spans.at(-1)?.end ?? 0);
  for (const { kind, start, end } of spans) {
    if (kind === "sampled") mask.fill(1, start, end);
  }
  return mask;
}

import type { Sample } from "../../trajectory/sample.ts";
import { kindIndex } from "./token-kind.ts";

/** Consecutive ids whose author is named in the row. */
interface NamedSpan {
  readonly kind: string;
  readonly start: number;
  readonly end: number;
}

/**
 * Returns the author of each id of a training row: `result[i]`, an index into `tokenKinds`, is the author of
 * `tokenIds[i]`. Uses the prompt's length, the turns and the row's own spans. Does not use the loss mask, so that the
 * mask can be compared with the authors. After a turn without a stop id, the first id is the end of turn that the
 * policy did not sample.
 */
export function findKinds(
  row: Pick<Sample, "promptLength" | "turns"> & {
    readonly tokenIds: ArrayLike<number>;
    readonly spans?: unknown;
  },
  stopIds: ReadonlySet<number> | undefined,
): Uint8Array {
  const { tokenIds, promptLength, turns } = row;
  const kinds = new Uint8Array(tokenIds.length).fill(kindIndex.environment);
  kinds.fill(kindIndex.prompt, 0, promptLength);
  for (const [index, { start, end, droppedStopId }] of turns.entries()) {
    kinds.fill(kindIndex.sampled, start, end);
    const next = turns[index + 1]?.start ?? tokenIds.length;
    const isClosed = end === start || droppedStopId !== undefined || stopIds === undefined;
    if (isClosed || end >= next || stopIds.has(tokenIds[end - 1]!)) continue;
    kinds[end] = kindIndex["synthesised-close"];
  }
  for (const { kind, start, end } of namedSpans(row.spans)) {
    const named = kindIndex[kind as keyof typeof kindIndex] as number | undefined;
    if (named !== undefined) kinds.fill(named, start, end);
  }
  return kinds;
}

function namedSpans(value: unknown): readonly NamedSpan[] {
  return Array.isArray(value) ? (value as readonly NamedSpan[]) : [];
}

import type { TurnSpan } from "../../trajectory/segment.ts";
import type { ReadyRow } from "../exporter.ts";

/** Returns the turns of a row that have at least one sampled id, in order. */
export function sampledTurns({ turns, tokenIds }: ReadyRow): readonly TurnSpan[] {
  return turns.filter(({ start, end }) => end > start && end <= tokenIds.length);
}

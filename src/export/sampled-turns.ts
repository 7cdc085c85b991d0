import type { TurnSpan } from "../trajectory/segment.ts";
import type { ReadyRow } from "./exporter.ts";

/** The turns of a row that have sampled ids in it, in their order. */
export function sampledTurns({ turns, tokenIds }: ReadyRow): readonly TurnSpan[] {
  return turns.filter(({ start, end }) => end > start && end <= tokenIds.length);
}

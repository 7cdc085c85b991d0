import { isObject } from "../../values/is-object.ts";
import type { TurnSpan } from "../../trajectory/segment.ts";
import { isCount, quote, type RawRow, type Violation } from "../../trajectory/violation.ts";
import type { Episode } from "../episode.ts";

/** Compares the turns of a training row with the episode's turn records. */
export function compareTurns(
  { turns }: RawRow,
  { turns: records }: Pick<Episode, "turns">,
): Violation[] {
  if (!Array.isArray(turns)) return [];
  return turns.flatMap((turn: unknown, index): Violation[] => {
    // Another check finds invalid spans.
    if (!isTurnSpan(turn)) return [];
    const { turnIndex, start, end, finish, droppedStopId } = turn;
    const record = records[turnIndex];
    const place = `turns[${index}]`;
    if (record === undefined) {
      const detail = `${place} is turn ${turnIndex}, and the episode has ${records.length}`;
      return [{ rule: "episode-turns", detail }];
    }
    const dropped = droppedStopId === undefined ? 0 : 1;
    const facts: readonly (readonly [string, unknown, unknown])[] = [
      ["finish", finish, record.finish],
      ["number of sampled ids", end - start + dropped, record.sampledTokenCount],
      ["number of ids before it", start, record.promptTokenCount],
    ];
    return facts
      .filter(([, own, other]) => own !== other)
      .map(([name, own, other]) => ({
        rule: "episode-turns",
        detail: `${place}: the ${name} is ${quote(own)}, and ${quote(other)} in the episode`,
      }));
  });
}

/** True if a row's turn has an index and a range of tokens. */
export function isTurnSpan(turn: unknown): turn is TurnSpan & RawRow {
  return isObject(turn) && ["turnIndex", "start", "end"].every((name) => isCount(turn[name]));
}

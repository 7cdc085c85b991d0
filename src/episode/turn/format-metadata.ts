import type { AttemptStatus } from "../../../packages/tool-parsers/src/tool-call-parser.ts";
import type { TurnSpan } from "../../trajectory/segment.ts";
import type { TurnRecord } from "../episode.ts";

/** A training row's facts about the form of its turns. JSON-able. */
interface FormatMetadata {
  /** True if all turns of the row are well formed. Absent if no turn has `format`. */
  readonly formatOk?: boolean;
  /** The first malformed call of the row, if any. `tokenSpan` counts in the row's `tokenIds`. */
  readonly firstFormatError?: {
    readonly turnIndex: number;
    readonly status: AttemptStatus;
    readonly tokenSpan: readonly [start: number, end: number];
  };
}

/**
 * Returns the form facts of a row.
 *
 * @param records - All turns of the episode.
 */
export function formatMetadata(
  row: { readonly turns: readonly TurnSpan[] },
  records: readonly TurnRecord[],
): FormatMetadata {
  const judged = row.turns.flatMap((span) => {
    const format = records[span.turnIndex]?.format;
    return format === undefined ? [] : [{ span, format }];
  });
  if (judged.length === 0) return {};
  const formatOk = judged.every(({ format }) => format.formatOk);
  const first = judged.find(({ format }) => format.firstError !== undefined);
  const error = first?.format.firstError;
  if (first === undefined || error === undefined) return { formatOk };
  const { turnIndex, start, end } = first.span;
  const place = (index: number): number => Math.min(start + index, end);
  const [from, to] = error.tokenSpan;
  return {
    formatOk,
    firstFormatError: { turnIndex, status: error.status, tokenSpan: [place(from), place(to)] },
  };
}

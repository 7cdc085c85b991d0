import type { AttemptStatus } from "../../parser/tool-call-parser.ts";
import type { TurnSpan } from "../../trajectory/trajectory-recorder.ts";
import type { TurnRecord } from "../episode.ts";

/** What a training row says of the form of its turns. JSON-able. */
interface FormatMetadata {
  /** Whether all turns of the row are in order; absent where the agent does not judge that. */
  readonly formatOk?: boolean;
  /**
   * The first attempt of the row that was meant as a call and is none; `tokenSpan` counts in the row's
   * `tokenIds`. Absent where there is none.
   */
  readonly firstFormatError?: {
    readonly turnIndex: number;
    readonly status: AttemptStatus;
    readonly tokenSpan: readonly [start: number, end: number];
  };
}

/** @param records - All turns of the episode. */
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

import type { RawRow, Violation } from "../../trajectory/violation.ts";
import { memberAt, readPart, type ExportedRecord, type ExportedRow } from "./exported-row.ts";

/** Reads a record of an export. */
export type Reader = (record: RawRow) => ExportedRecord;

/** The paths of a row's parts, for a form with one row per record. */
interface Layout {
  readonly prompt?: string;
  readonly ids: string;
  readonly mask: string;
  readonly logprobs: string;
  readonly versions?: string;
  readonly advantages?: string;
  readonly reward: string;
  readonly group: string;
  readonly rollout?: string;
  readonly lineage?: string;
}

/** Returns a reader for a form with one row per record. */
export function readerOf(layout: Layout): Reader {
  return (record) => {
    const found: Violation[] = [];
    const part = (name: "prompt" | "versions" | "advantages") => {
      const path = layout[name];
      return path === undefined ? {} : { [name]: readPart(record, path, found) };
    };
    const row: ExportedRow = {
      ids: readPart(record, layout.ids, found),
      mask: readPart(record, layout.mask, found),
      logprobs: readPart(record, layout.logprobs, found),
      ...part("prompt"),
      ...part("versions"),
      ...part("advantages"),
    };
    const lineage = layout.lineage === undefined ? undefined : memberAt(record, layout.lineage);
    return {
      rows: [row],
      reward: memberAt(record, layout.reward),
      group: memberAt(record, layout.group),
      ...(layout.rollout !== undefined && { rollout: memberAt(record, layout.rollout) }),
      ...(lineage !== undefined && { lineage }),
      found,
    };
  };
}

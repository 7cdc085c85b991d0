import { withoutUndefined } from "../values/without-undefined.ts";
import { encodeLine } from "../run/disk/encode-line.ts";
import { columnDocument } from "./column-document.ts";
import { exportGroups } from "./export-groups.ts";
import type { ExportNote, ExportSurroundings } from "./exporter.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import { readRunGroups } from "./read-run-groups.ts";

/** The counts of a finished export. JSON-able. */
export interface ExportSummary {
  readonly to: ExportTarget;
  readonly groups: number;
  /** The number of records: rows, or episodes if one record is an episode. */
  readonly records: number;
  /** The rows that are left out because the trainer takes one row an attempt. Absent if there are none. */
  readonly leftOut?: { readonly rowCount: number; readonly tokenCount: number };
}

/** Options of `exportRun()`. */
export interface ExportOptions {
  /** The policy version, a whole number, of tokens without one (`""`). */
  readonly policyVersion?: number;
  /**
   * The name of the caller's option for `policyVersion`, for error messages. Default:
   * `policyVersion`.
   */
  readonly versionRemedy?: string;
  /**
   * The temperature at which the run sampled, for prime-rl. Default: the temperature in the run's
   * folder.
   */
  readonly temperature?: number;
  /** The discount for advantages of turns, from 0 to 1, for prime-rl and tinker. Default: one advantage an attempt. */
  readonly turnDiscount?: number;
  /** True for a reward at the last token of each turn, for SkyRL. Default: one reward an attempt. */
  readonly hasTurnRewards?: boolean;
  /**
   * The name of the caller's option for `temperature`, for error messages. Default: `temperature`.
   */
  readonly temperatureRemedy?: string;
  /**
   * Returns the text of a prompt's ids, for slime's `prompt`. Default: `prompt` has the messages.
   */
  readonly spell?: ExportSurroundings["spell"];
  /** Called for each row that is left out or cut. */
  readonly onNote?: (note: ExportNote) => void;
}

/** An export in progress. */
export interface RunExport {
  /** The bytes of the file. They can be read only once. */
  readonly content: AsyncGenerator<Uint8Array>;
  /** Returns the counts so far. They are final once the content has been read. */
  readonly summary: () => ExportSummary;
}

/**
 * Exports a run's folder to one trainer's file, one group at a time.
 * @throws UsageError if `dir` is not a run's folder. Reading the content throws it if a row is
 *   refused.
 */
export async function exportRun(
  dir: string,
  to: ExportTarget,
  { onNote, ...known }: ExportOptions = {},
): Promise<RunExport> {
  const run = await readRunGroups(dir, withoutUndefined(known));
  const { layout } = exporters[to];
  let groups = 0;
  let count = 0;
  const leftOut = { rowCount: 0, tokenCount: 0 };
  async function* records() {
    for await (const group of exportGroups(to, run.groups(), run.surroundings)) {
      for (const note of group.notes) {
        onNote?.(note);
        if (note.action !== "one-row") continue;
        leftOut.rowCount += note.rowCount ?? 0;
        leftOut.tokenCount += note.tokenCount ?? 0;
      }
      if (group.records.length > 0) groups += 1;
      count += group.records.length;
      yield* group.records;
    }
  }
  const content = layout === "lines" ? lines(records()) : columnDocument(records(), layout);
  const summary = (): ExportSummary => ({
    to,
    groups,
    records: count,
    ...(leftOut.rowCount > 0 && { leftOut: { ...leftOut } }),
  });
  return { content, summary };
}

async function* lines(records: AsyncIterable<object>): AsyncGenerator<Uint8Array> {
  for await (const record of records) yield* (await encodeLine(record)).blocks;
}

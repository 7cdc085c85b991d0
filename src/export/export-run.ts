import { withoutUndefined } from "../values/without-undefined.ts";
import { encodeLine } from "../run/disk/encode-line.ts";
import { columnDocument } from "./column-document.ts";
import { exportGroups } from "./export-groups.ts";
import type { ExportNote, ExportSurroundings } from "./exporter.ts";
import { exporters, type ExportTarget } from "./exporters.ts";
import { readRunGroups } from "./read-run-groups.ts";

/** What an export holds. JSON-able. */
export interface ExportSummary {
  readonly to: ExportTarget;
  readonly groups: number;
  /** Rows, or episodes where a record is one. */
  readonly records: number;
}

/** How a run is exported. */
export interface ExportOptions {
  /** The whole number that stands for `""`, where the engine named no version. */
  readonly policyVersion?: number;
  /** How whoever asks gives `policyVersion`, for the refusal of a row that needs it; absent: by that name. */
  readonly versionRemedy?: string;
  /** At which the run sampled, for prime-rl. Default: what its folder says. */
  readonly temperature?: number;
  /** How whoever asks gives `temperature`, for the refusal of a row that needs it; absent: by that name. */
  readonly temperatureRemedy?: string;
  /** Spells a prompt's ids out, for slime's `prompt`; absent: it has the messages. */
  readonly spell?: ExportSurroundings["spell"];
  /** Called with each thing that is left out or cut, as it happens. */
  readonly onNote?: (note: ExportNote) => void;
}

/** An export under way. */
export interface RunExport {
  /** The bytes of the file, to be read once. */
  readonly content: AsyncGenerator<Uint8Array>;
  /** What was written so far; of the whole when the content is read. */
  readonly summary: () => ExportSummary;
}

/**
 * Makes a trainer's file of a run's folder, a group at a time.
 *
 * @throws UsageError where it is no run's folder; the content throws it where a row is refused.
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
  async function* records() {
    for await (const group of exportGroups(to, run.groups(), run.surroundings)) {
      for (const note of group.notes) onNote?.(note);
      if (group.records.length > 0) groups += 1;
      count += group.records.length;
      yield* group.records;
    }
  }
  const content = layout === "lines" ? lines(records()) : columnDocument(records(), layout);
  return { content, summary: () => ({ to, groups, records: count }) };
}

async function* lines(records: AsyncIterable<object>): AsyncGenerator<Uint8Array> {
  for await (const record of records) yield* (await encodeLine(record)).blocks;
}

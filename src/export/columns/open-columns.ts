import { namesOf, type ColumnSpecs } from "../../columns/column-specs.ts";
import { openColumnFolder } from "../../run/columns/column-folder.ts";
import { exporters, type ExportTarget } from "../exporters.ts";
import { chooseColumns } from "./choose-columns.ts";
import type { ColumnSink } from "./column-sink.ts";
import { ColumnAdder } from "./export-columns.ts";

/**
 * Opens the side columns of a run that a trainer takes. Returns `undefined` if the trainer takes none.
 *
 * @param dir - The run's folder.
 * @throws UsageError if a column is refused.
 */
export function openColumns(
  dir: string,
  to: ExportTarget,
  { specs, sink }: { readonly specs: ColumnSpecs; readonly sink: ColumnSink | undefined },
): ColumnAdder | undefined {
  const { taken } = chooseColumns(to, specs);
  if (namesOf(taken).length === 0) return undefined;
  const folder = openColumnFolder(dir);
  const places = { specs: taken, source: folder, ...(sink && { sink }) };
  const close = async (): Promise<void> => await folder[Symbol.asyncDispose]();
  return new ColumnAdder(exporters[to].columns.add!, places, close);
}

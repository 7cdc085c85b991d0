import type { ExportRecord } from "../export-record.ts";
import { expertType } from "./array-type.ts";
import { noColumnRules, type ColumnExport } from "./column-rules.ts";
import type { PlacedArray } from "./column-sink.ts";
import type { RowColumns } from "./row-columns.ts";

/**
 * Exports the `art_moe_routing` of each choice: the routes of its prompt and its ids but the last. The arrays of a
 * row's choices begin at the same offset, because each prompt extends the previous one.
 *
 * **Source:** openpipe-art 0.5.23, art/trajectories/_routed_experts.py (`choice_routes`) and
 * art/preprocessing/moe_routing.py (`moe_route_dtype`).
 */
export const artColumns: ColumnExport = {
  rules: {
    ...noColumnRules,
    routedExperts: {
      action: "export",
      why: "`art_moe_routing` of each choice: uint8 to 256 experts, else uint16; a row for each id but its last",
    },
  },
  carrier: "file",
  add: async (record, rows) => {
    if (rows[0]?.specs.routedExperts === undefined) return record;
    const histories = [record, ...(record["additional_histories"] as readonly ExportRecord[])];
    const added: ExportRecord[] = [];
    for (const [index, history] of histories.entries()) {
      const entries = history["messages_and_choices"] as readonly ExportRecord[];
      added.push({ messages_and_choices: await addToHistory(entries, rows[index]!) });
    }
    const [first, ...more] = added;
    return { ...record, ...first, additional_histories: more };
  },
};

async function addToHistory(
  entries: readonly ExportRecord[],
  row: RowColumns,
): Promise<readonly ExportRecord[]> {
  const { expertCount } = row.specs.routedExperts!;
  const type = expertType(expertCount, ["uint8", "uint16"]);
  const rows = row.tokenCount - 1;
  const routes = await row.place(row.tokenArray("routedExperts", { type, rows }));
  return entries.map((entry) =>
    "finish_reason" in entry ? { ...entry, art_moe_routing: routingOf(entry, routes) } : entry,
  );
}

function routingOf(choice: ExportRecord, { offset, shape, dtype }: PlacedArray): ExportRecord {
  const { prompt_token_ids, token_ids } = choice as Record<string, readonly number[]>;
  const rows = prompt_token_ids!.length + token_ids!.length - 1;
  return {
    prompt_token_ids,
    completion_token_ids: token_ids,
    routed_experts: { offset, shape: [rows, ...shape.slice(1)], dtype },
  };
}

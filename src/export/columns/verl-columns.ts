import type { ExportRecord } from "../export-record.ts";
import { expertType } from "./array-type.ts";
import { noColumnRules, type ColumnExport } from "./column-rules.ts";
import type { PlacedArray } from "./column-sink.ts";
import type { RowColumns } from "./row-columns.ts";

/**
 * Exports verl's `routed_experts`: a row for each id of prompt and response, the last one zero. verl checks neither
 * number nor alignment of the rows.
 *
 * **Source:** verl 0.9.1, verl/experimental/agent_loop/agent_loop.py (`AgentLoopOutput.as_dict()`, which makes int16).
 */
export const verlColumns: ColumnExport = {
  rules: {
    ...noColumnRules,
    routedExperts: {
      action: "export",
      why: "`routed_experts`: uint8 to 256 experts, else int16; a row for each id, the last one zero",
      setting: "actor_rollout_ref.actor.megatron.router_replay.mode=R3",
    },
  },
  carrier: "file",
  add: async (record, rows) => {
    if (rows[0]?.specs.routedExperts === undefined) return record;
    const placed: PlacedArray[] = [];
    for (const row of rows) placed.push(await placeRoutes(row));
    const outputs = record["outputs"] as readonly ExportRecord[] | undefined;
    if (outputs === undefined) return { ...record, routed_experts: placed[0] };
    return { outputs: outputs.map((output, at) => ({ ...output, routed_experts: placed[at] })) };
  },
};

/** Writes routes with a row for each id, the last one zero. */
async function placeRoutes(row: RowColumns): Promise<PlacedArray> {
  const { expertCount } = row.specs.routedExperts!;
  const type = expertType(expertCount, ["uint8", "int16"]);
  return await row.place(row.tokenArray("routedExperts", { type, rows: row.tokenCount }));
}

import { expertType } from "./array-type.ts";
import { noColumnRules, type ColumnExport } from "./column-rules.ts";

/**
 * Exports prime-rl's `routed_experts`: a row for each id, the last one zero. prime-rl's trainer requires a row for each
 * id.
 *
 * **Source:** prime-rl 559b44772, src/prime_rl/transports/rollouts/types.py (`RoutedExperts`) and
 * src/prime_rl/orchestrator/trajectories.py (`_encode_routed_experts`).
 */
export const primeRlColumns: ColumnExport = {
  rules: {
    ...noColumnRules,
    routedExperts: {
      action: "export",
      why: "`sample.routed_experts`: uint8 to 256 experts, else int16; a row for each id, the last one zero",
      setting: "trainer.enable_router_replay = true",
    },
  },
  carrier: "file",
  add: async (record, [row]) => {
    if (row?.specs.routedExperts === undefined) return record;
    const { expertCount } = row.specs.routedExperts;
    const type = expertType(expertCount, ["uint8", "int16"]);
    const array = row.tokenArray("routedExperts", { type, rows: row.tokenCount });
    const sample = record["sample"] as object;
    return { ...record, sample: { ...sample, routed_experts: await row.place(array) } };
  },
};

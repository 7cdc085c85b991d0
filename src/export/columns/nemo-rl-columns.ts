import { UsageError } from "../../errors.ts";
import type { ExportRecord } from "../export-record.ts";
import { elementBytes, expertType } from "./array-type.ts";
import { base64Text } from "./base64-text.ts";
import { noColumnRules, type ColumnExport } from "./column-rules.ts";
import type { RowColumns } from "./row-columns.ts";

/** The greatest number of bytes of an episode's routes. Each call repeats the routes of its prompt. */
const maxRouteBytes = 64 * 1024 * 1024;

/**
 * Exports the `routed_experts` of each output item: a text of signed ids, with a row for each id of the call's prompt and
 * output. The last id of the last call was not computed: its row is -1, which NeMo-RL reads as missing.
 *
 * **Source:** NeMo-RL 7ea279ab, nemo_rl/utils/routed_experts_codec.py and nemo_rl/environments/nemo_gym.py.
 */
export const nemoRlColumns = {
  rules: {
    ...noColumnRules,
    routedExperts: {
      action: "export",
      why: "`routed_experts` of each output item: `nrlre1`, int8 to 128 experts, else int16; a row for each id of prompt and output, -1 for the last",
      setting: "policy.router_replay.enabled=true",
    },
  },
  carrier: "record",
  add: async (record, [row]) => {
    if (row?.specs.routedExperts === undefined) return record;
    const response = record["response"] as { readonly output: readonly ExportRecord[] };
    requireRoom(row, response.output);
    const output: ExportRecord[] = [];
    for (const item of response.output) {
      output.push({ ...item, routed_experts: await spellRoutes(row, endOf(item)) });
    }
    return { ...record, response: { ...response, output } };
  },
} satisfies ColumnExport;

/** Returns the number of ids of a call's prompt and output. */
function endOf(item: ExportRecord): number {
  const { prompt_token_ids, generation_token_ids } = item as Record<string, readonly number[]>;
  return prompt_token_ids!.length + generation_token_ids!.length;
}

async function spellRoutes(row: RowColumns, end: number): Promise<string> {
  const type = expertType(row.specs.routedExperts!.expertCount, ["int8", "int16"]);
  const array = row.tokenArray("routedExperts", { type, rows: end, padding: "missing" });
  return `nrlre1:${type}:${array.shape.join("x")}:${await base64Text(array.bytes())}`;
}

/**
 * Limits the size of an episode's routes.
 *
 * @throws UsageError if the routes of all calls together are too large for one line.
 */
function requireRoom(row: RowColumns, output: readonly ExportRecord[]): void {
  const { expertCount, layerCount, perToken } = row.specs.routedExperts!;
  const idBytes = elementBytes(expertType(expertCount, ["int8", "int16"]));
  const rows = output.reduce((sum, item) => sum + endOf(item), 0);
  const bytes = rows * layerCount * perToken * idBytes;
  if (bytes <= maxRouteBytes) return;
  throw new UsageError(
    `Cannot export routedExperts of ${row.row.sample.rolloutId}: each of its ${output.length} calls repeats the routes of ` +
      `its prompt, ${bytes} bytes together, at most ${maxRouteBytes}; play fewer turns, or use a trainer that takes ` +
      "one array a row, such as slime or verl",
  );
}

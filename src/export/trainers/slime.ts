import { milesColumns } from "../columns/miles-columns.ts";
import { slimeColumns } from "../columns/slime-columns.ts";
import { toSlimeRow, type SlimeSample } from "../../run/slime/slime.ts";
import { countedGroupRules } from "./common-rules.ts";
import type { ExportRecord } from "../export-record.ts";
import type { Exporter } from "../exporter.ts";

/**
 * Exports slime's `Sample`, one row a line, as `--format slime` writes it. The rows of an attempt have
 * one `rollout_id`.
 */
export const slimeExporter: Exporter = {
  trainer: "slime, Sample",
  layout: "lines",
  hasPromptText: true,
  lineagePath: "metadata.lineage",
  columns: slimeColumns,
  rules: {
    ...countedGroupRules,
    truncated: { action: "keep", why: "`status` is `truncated`" },
    failed: { action: "leave-out-group", why: "slime fails on a reward of null" },
    unscored: { action: "leave-out-group", why: "slime fails on a reward of null" },
    segments: {
      action: "keep",
      why: "one `rollout_id`; needs slime_rewards.by_attempt and --use-dynamic-batch-size",
    },
    mixedVersions: { action: "keep", why: "`weight_versions` has one entry for each policy call" },
    unnamedVersions: { action: "keep", why: "`weight_versions` are texts" },
    environmentTail: { action: "keep", why: "`loss_mask` is 0 there" },
    components: { action: "keep", why: "`metadata.rewardComponents`, which the trainer logs" },
    turnRewards: { action: "keep", why: "`metadata.turnRewards`, for a custom advantage function" },
  },
  toRecords: ({ episode, place, rows }) =>
    rows.map(({ sample }) => ({ ...toSlimeRow(episode, sample, place) })),
};

/**
 * Exports miles' `Sample`, one row a line. miles counts an attempt once by its `rollout_id`.
 *
 * **Source:** radixark/miles 31f1ca961, miles/utils/types.py (class Sample).
 */
export const milesExporter: Exporter = {
  ...slimeExporter,
  trainer: "miles, Sample",
  columns: milesColumns,
  rules: {
    ...slimeExporter.rules,
    failed: { action: "leave-out-group", why: "miles fails on a reward of null" },
    unscored: { action: "leave-out-group", why: "miles fails on a reward of null" },
    segments: { action: "keep", why: "one `rollout_id`" },
  },
  toRecords: ({ episode, place, rows }) =>
    rows.map(({ sample }) => toMilesRow(toSlimeRow(episode, sample, place))),
};

/** Returns a row with miles' name of the routing key. */
function toMilesRow({ session_id: routing_key, ...row }: SlimeSample): ExportRecord {
  return { ...row, routing_key };
}

/** Replaces the messages in a row's `prompt` by the text that the policy received. */
export async function withPromptText(
  record: ExportRecord,
  spell: (ids: readonly number[]) => Promise<string>,
): Promise<ExportRecord> {
  const { tokens, response_length: length } = record as {
    readonly tokens: readonly number[];
    readonly response_length: number;
  };
  return { ...record, prompt: await spell(tokens.slice(0, tokens.length - length)) };
}

import { toSlimeRow } from "../run/slime/slime.ts";
import { countedGroupRules } from "./common-rules.ts";
import type { Exporter } from "./exporter.ts";

/** Exports slime's `Sample`, one row a line, as `--format slime` writes it. */
export const slimeExporter: Exporter = {
  trainer: "slime, Sample",
  layout: "lines",
  rules: {
    ...countedGroupRules,
    truncated: { action: "keep", why: "`status` is `truncated`" },
    failed: { action: "leave-out-group", why: "slime fails on a reward of null" },
    unscored: { action: "leave-out-group", why: "slime fails on a reward of null" },
    mixedVersions: { action: "keep", why: "`weight_versions`, one a policy call" },
    unnamedVersions: { action: "keep", why: "`weight_versions` are texts" },
    environmentTail: { action: "keep", why: "`loss_mask` is 0 there" },
  },
  toRecords: ({ episode, place, rows }) =>
    rows.map(({ sample }) => ({ ...toSlimeRow(episode, sample, place) })),
};

/** Returns a row whose `prompt` is the text that the policy received, in place of the messages. */
export async function withPromptText(
  row: Readonly<Record<string, unknown>>,
  spell: (ids: readonly number[]) => Promise<string>,
): Promise<Readonly<Record<string, unknown>>> {
  const { tokens, response_length: length } = row as {
    readonly tokens: readonly number[];
    readonly response_length: number;
  };
  return { ...row, prompt: await spell(tokens.slice(0, tokens.length - length)) };
}

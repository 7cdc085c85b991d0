import { artColumns } from "../columns/art-columns.ts";
import { namedGroupRules } from "./common-rules.ts";
import { componentValues } from "./component-values.ts";
import { sampledTurns } from "./sampled-turns.ts";
import { textBefore } from "./text-before.ts";
import { versionRange } from "./version-range.ts";
import type { Exporter, ReadyAttempt, ReadyRow } from "../exporter.ts";

/**
 * Exports the fields of a `Trajectory`, one attempt a line. The first row is `messages_and_choices`, the others are
 * `additional_histories`. Each choice has the ids of its prompt and its own: ART trains on the ids and not on the
 * messages.
 *
 * **Source:** openpipe-art 0.5.23, art/trajectories/__init__.py (`Trajectory`, `LegacyHistory`).
 */
export const artExporter: Exporter = {
  trainer: "ART, Trajectory",
  isPerAttempt: true,
  layout: "lines",
  columns: artColumns,
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "`metadata.outcome`" },
    segments: { action: "keep", why: "`additional_histories` of the attempt's trajectory" },
    components: { action: "keep", why: "`rewards/NAME` in `metrics`, which ART logs" },
    mixedVersions: {
      action: "keep",
      why: "`initial_policy_version` and `final_policy_version`, if they are whole numbers",
    },
  },
  toRecords: (attempt) => {
    const [first, ...more] = attempt.rows.map((row) => toHistory(row, attempt));
    const { rolloutId, groupId, reward, episode } = attempt;
    return [
      {
        messages_and_choices: first,
        additional_histories: more.map((history) => ({ messages_and_choices: history })),
        reward,
        ...policyVersions(attempt),
        ...metricsOf(attempt),
        metadata: { rollout: rolloutId, group: groupId, outcome: episode.outcome },
      },
    ];
  },
};

/**
 * Returns messages and choices, in the order of the conversation. A choice is the only kind of entry with a
 * `finish_reason`.
 */
function toHistory(row: ReadyRow, { episode }: ReadyAttempt): readonly object[] {
  return sampledTurns(row).flatMap(({ turnIndex, start, end, finish }) => [
    { role: "user", content: textBefore(turnIndex, row, episode) },
    {
      index: 0,
      finish_reason: finish,
      message: { role: "assistant", content: episode.turns[turnIndex]?.text ?? "" },
      logprobs: {
        content: row.tokenIds.slice(start, end).map((id, index) => ({
          token: `token_id:${id}`,
          logprob: row.logprobs[start + index],
          top_logprobs: [],
        })),
        refusal: null,
      },
      prompt_token_ids: row.tokenIds.slice(0, start),
      token_ids: row.tokenIds.slice(start, end),
    },
  ]);
}

function metricsOf({ episode }: ReadyAttempt) {
  const values = componentValues(episode);
  if (values === undefined) return {};
  const named = Object.entries(values).map(([name, value]) => [`rewards/${name}`, value]);
  return { metrics: Object.fromEntries(named) };
}

function policyVersions({ rows }: ReadyAttempt) {
  const range = versionRange(rows);
  if (range === undefined) return {};
  return { initial_policy_version: range.least, final_policy_version: range.most };
}

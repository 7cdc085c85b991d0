import type { RewardComponents } from "../environment/reward-parts.ts";
import type { EpisodeStory } from "../run/folder/episode-row.ts";

const columns: Readonly<Record<string, (episode: EpisodeStory) => string | number | undefined>> = {
  rollout_id: ({ rolloutId }) => rolloutId,
  group_id: ({ groupId }) => groupId,
  task_id: ({ taskId }) => taskId,
  task_index: ({ taskIndex }) => taskIndex,
  sample_index: ({ sampleIndex }) => sampleIndex,
  seed: ({ seed }) => seed,
  reward: ({ reward }) => reward,
  outcome: ({ outcome }) => outcome,
  stop_reason: ({ stopReason }) => stopReason,
  failure: ({ failure }) => failure?.code,
  turns: ({ counts }) => counts.turnCount,
  tool_calls: ({ counts }) => counts.toolCallCount,
  format_errors: ({ counts }) => counts.formatErrorCount,
  sampled_tokens: ({ counts }) => counts.sampledTokenCount,
  tokens: ({ counts }) => counts.tokenCount,
  user_calls: ({ userUsage }) => userUsage.callCount,
  duration_s: ({ durationMs }) => durationMs / 1000,
};

/**
 * Yields CSV for spreadsheets, as RFC 4180 defines it: one line an episode. An absent value is an empty cell. A
 * component of the reward has a column `reward.NAME` with its value, without its weight. The names of these columns are
 * known only at the end. Until then all lines are kept in memory, with some hundred bytes each.
 */
export async function* csvFile(
  episodes: AsyncIterable<{ readonly episode: EpisodeStory }>,
): AsyncGenerator<Uint8Array> {
  const lines: { readonly cells: string; readonly parts: RewardComponents | undefined }[] = [];
  const components = new Set<string>();
  for await (const { episode } of episodes) {
    const { rewardComponents: parts } = episode;
    for (const name of Object.keys(parts ?? {})) components.add(name);
    const cells = Object.values(columns).map((value) => toCell(value(episode)));
    lines.push({ cells: cells.join(","), parts });
  }
  const names = [...components];
  const heads = [...Object.keys(columns), ...names.map((name) => toCell(`reward.${name}`))];
  yield Buffer.from(`${heads.join(",")}\r\n`);
  for (const { cells, parts = {} } of lines) {
    const values = names.map((name) =>
      Object.hasOwn(parts, name) ? parts[name]!.value : undefined,
    );
    yield Buffer.from(`${[cells, ...values.map(toCell)].join(",")}\r\n`);
  }
}

function toCell(value: string | number | undefined): string {
  if (typeof value !== "string") return value === undefined ? "" : String(value);
  // A spreadsheet runs a cell that begins like this as a formula, and names come from environments.
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

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

/** Yields the finished episodes of a run. Each call reads them again. */
type ReadEpisodes = () => AsyncIterable<{ readonly episode: EpisodeStory }>;

/**
 * Yields CSV for spreadsheets, as RFC 4180 defines it: one line an episode. An absent value is an
 * empty cell. A component of the reward has a column `reward.NAME` with its value, without its weight.
 */
export async function* csvFile(read: ReadEpisodes): AsyncGenerator<Uint8Array> {
  const components = await componentNames(read);
  const names = [...Object.keys(columns), ...components.map((name) => toCell(`reward.${name}`))];
  yield Buffer.from(`${names.join(",")}\r\n`);
  for await (const { episode } of read()) {
    const { rewardComponents: parts = {} } = episode;
    const cells = [
      ...Object.values(columns).map((value) => value(episode)),
      ...components.map((name) => (Object.hasOwn(parts, name) ? parts[name]!.value : undefined)),
    ];
    yield Buffer.from(`${cells.map(toCell).join(",")}\r\n`);
  }
}

/** Returns the names of the components that the episodes' rewards have, in the order in which they appear. */
async function componentNames(read: ReadEpisodes): Promise<readonly string[]> {
  const names = new Set<string>();
  for await (const { episode } of read()) {
    for (const name of Object.keys(episode.rewardComponents ?? {})) names.add(name);
  }
  return [...names];
}

function toCell(value: string | number | undefined): string {
  if (typeof value !== "string") return value === undefined ? "" : String(value);
  // A spreadsheet runs a cell that begins like this as a formula, and names come from environments.
  const safe = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

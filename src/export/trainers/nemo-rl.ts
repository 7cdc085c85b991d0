import { nemoRlColumns } from "../columns/nemo-rl-columns.ts";
import { hasSamePrompt } from "../has-same-prompt.ts";
import { namedGroupRules } from "./common-rules.ts";
import { lineageIn } from "./lineage-in.ts";
import { longestRow } from "./longest-row.ts";
import { sampledTurns } from "./sampled-turns.ts";
import type { Exporter, ReadyAttempt, ReadyRow } from "../exporter.ts";

/**
 * Exports the reply of a NeMo Gym agent to `POST /run`, one episode a line: each policy call with
 * its complete prompt.
 * **Source:** NeMo-RL 7ea279ab, nemo_rl/environments/nemo_gym.py (`message_log`).
 */
export const nemoRlExporter: Exporter = {
  trainer: "NeMo-RL, NeMo Gym's agent result",
  isPerAttempt: true,
  layout: "lines",
  columns: nemoRlColumns,
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "no field for it" },
    segments: {
      action: "one-row",
      why: "each prompt must extend the one before: the longest row with the task's prompt is exported",
    },
    differentPrompts: {
      action: "leave-out-group",
      why: "NeMo-RL groups results by the ids of their first prompts: each would be its own group",
    },
    components: {
      action: "keep",
      why: "`reward_components` has the weighted values, which add up to the reward",
    },
  },
  // NeMo-RL groups results by the ids of their first prompt.
  chooseRow(rows) {
    const first = rows.find((sample) => lineageIn({ sample })?.role === "main") ?? rows[0]!;
    return longestRow(rows.filter((row) => hasSamePrompt(first, row)));
  },
  toRecords: (attempt) =>
    attempt.rows.map((row) => ({
      responses_create_params: { input: [] },
      reward: attempt.reward,
      ...componentsOf(attempt),
      group: attempt.groupId,
      response: { id: attempt.rolloutId, object: "response", output: toOutput(row, attempt) },
    })),
};

/** Returns the weighted components. NeMo-RL requires that they add up to the reward. */
function componentsOf({ episode: { rewardComponents } }: ReadyAttempt): object {
  if (rewardComponents === undefined) return {};
  const components = Object.entries(rewardComponents).map(
    ([name, { value, weight }]) => [name, value * weight] as const,
  );
  return { reward_components: Object.fromEntries(components) };
}

function toOutput(row: ReadyRow, { episode }: ReadyAttempt) {
  return sampledTurns(row).map(({ turnIndex, start, end }, index) => ({
    type: "message",
    id: `m${index}`,
    role: "assistant",
    status: "completed",
    content: [{ type: "output_text", text: episode.turns[turnIndex]?.text ?? "", annotations: [] }],
    prompt_token_ids: row.tokenIds.slice(0, start),
    generation_token_ids: row.tokenIds.slice(start, end),
    generation_log_probs: row.logprobs.slice(start, end),
  }));
}

import { isWhole } from "../../export/prepare-group.ts";
import { sampledTurns } from "../../export/trainers/sampled-turns.ts";
import type { ExportRules, ReadyAttempt } from "../../export/exporter.ts";
import { namedGroupRules } from "../../export/trainers/common-rules.ts";
import type { AglEvent } from "./agl-store.ts";

/** The rule for each kind of attempt. Several rows become several trajectories. */
export const aglRules: ExportRules = namedGroupRules;

/**
 * Converts an attempt to the events that agent-lightning's proxy would have recorded: one event for
 * each policy call, with the complete prompt, and then the reward.
 *
 * **Source:** microsoft/agent-lightning agentlightning/server/routes/events.py
 * (`_trim_model_request`) and agentlightning/schemas.py, 1.0.2.
 */
export function toAglEvents(attempt: ReadyAttempt, model: string): readonly AglEvent[] {
  const { rows, episode, reward } = attempt;
  const calls = rows.flatMap((row) =>
    sampledTurns(row).map(({ turnIndex, start, end }) => {
      const logprobs = row.logprobs.slice(start, end);
      const turn = episode.turns[turnIndex];
      const version = row.policyVersions[end - 1]!;
      const choice = {
        index: 0,
        message: { role: "assistant", content: turn?.text ?? "" },
        token_ids: row.tokenIds.slice(start, end),
        logprobs: { content: logprobs.map((logprob) => ({ token: "", logprob })) },
        finish_reason: turn?.finish === "length" ? "length" : "stop",
      };
      const response = { prompt_token_ids: row.tokenIds.slice(0, start), choices: [choice] };
      const server = { model, version: isWhole(version) ? Number(version) : null };
      const data = { model, request: {}, response, server, http_status: 200, status: "ok" };
      return { event_type: "model_request", data };
    }),
  );
  return [...calls, { event_type: "reward", data: { value: reward, source: "turnwright" } }];
}

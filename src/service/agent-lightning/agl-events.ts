import { spellNpyRoutes } from "../../export/columns/agent-lightning-columns.ts";
import { RowColumns } from "../../export/columns/row-columns.ts";
import { isWhole } from "../../export/prepare-group.ts";
import { sampledTurns } from "../../export/trainers/sampled-turns.ts";
import type { ExportRules, ReadyAttempt, ReadyRow } from "../../export/exporter.ts";
import { namedGroupRules } from "../../export/trainers/common-rules.ts";
import type { TurnSpan } from "../../trajectory/segment.ts";
import type { GroupColumns } from "../batch-taker.ts";
import type { AglEvent } from "./agl-store.ts";

/** The rule for each kind of attempt. Several rows become several trajectories. */
export const aglRules: ExportRules = namedGroupRules;

/**
 * Yields the events that agent-lightning's proxy would have recorded: one event for each policy call, with the complete
 * prompt, and then the reward. The last call of a row has the routes of the complete row: agent-lightning keeps those of
 * the last call alone.
 *
 * **Source:** microsoft/agent-lightning agentlightning/server/routes/events.py
 * (`_trim_model_request`, `_drop_superseded_routed_experts`) and agentlightning/schemas.py, 1.0.2.
 *
 * @throws UsageError if a row lacks its routes, or their bytes cannot be read.
 */
export async function* aglEvents(
  attempt: ReadyAttempt,
  { model, columns }: { readonly model: string; readonly columns?: GroupColumns | undefined },
): AsyncGenerator<AglEvent> {
  for (const row of attempt.rows) {
    const turns = sampledTurns(row);
    for (const turn of turns) {
      const hasRoutes = turn === turns.at(-1) && columns?.specs.routedExperts !== undefined;
      const data = {
        ...callOf(turn, { row, attempt, model }),
        ...(hasRoutes && {
          routed_experts: await spellNpyRoutes(new RowColumns(row, columns), turn.end),
        }),
      };
      yield { event_type: "model_request", data };
    }
  }
  yield { event_type: "reward", data: { value: attempt.reward, source: "turnwright" } };
}

function callOf(
  { turnIndex, start, end }: TurnSpan,
  {
    row,
    attempt: { episode },
    model,
  }: { readonly row: ReadyRow; readonly attempt: ReadyAttempt; readonly model: string },
): object {
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
  return { model, request: {}, response, server, http_status: 200, status: "ok" };
}

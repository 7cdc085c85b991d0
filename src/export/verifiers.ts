import { namedGroupRules } from "./common-rules.ts";
import { sampledTurns } from "./sampled-turns.ts";
import type { Exporter, ReadyAttempt, ReadyRow } from "./exporter.ts";

/**
 * Exports the nodes of a trace, one episode a line. Each row is a branch with its own root. A
 * node's logprobs have one entry for each sampled token.
 *
 * **Source:** verifiers 0.4.0, verifiers/v1/graph.py (`MessageNode`) and verifiers/v1/trace.py
 * (`Branch`).
 */
export const verifiersExporter: Exporter = {
  trainer: "verifiers, Trace",
  layout: "lines",
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "`is_truncated`" },
    segments: { action: "keep", why: "a branch each, in one trace" },
  },
  toRecords: (attempt) => [
    {
      id: attempt.rolloutId,
      group: attempt.groupId,
      reward: attempt.reward,
      stop_condition: attempt.episode.stopReason,
      is_truncated: attempt.episode.outcome === "truncated",
      nodes: toNodes(attempt),
    },
  ],
};

interface Node {
  readonly parent: number | null;
  readonly message: { readonly role: "user" | "assistant"; readonly content: string };
  readonly sampled: boolean;
  readonly token_ids: readonly number[];
  readonly mask: readonly boolean[];
  readonly logprobs: readonly number[];
}

function toNodes({ rows, episode }: ReadyAttempt): readonly Node[] {
  const nodes: Node[] = [];
  for (const row of rows) {
    let at = 0;
    let parent: number | null = null;
    const push = (end: number, sampled: boolean, content: string): void => {
      const ids = row.tokenIds.slice(at, end);
      nodes.push({
        parent,
        message: { role: sampled ? "assistant" : "user", content },
        sampled,
        token_ids: ids,
        mask: ids.map(() => sampled),
        logprobs: sampled ? row.logprobs.slice(at, end) : [],
      });
      parent = nodes.length - 1;
      at = end;
    };
    for (const { turnIndex, start, end } of sampledTurns(row)) {
      push(start, false, heardBefore(turnIndex, row, episode));
      push(end, true, episode.turns[turnIndex]?.text ?? "");
    }
  }
  return nodes;
}

/**
 * Returns the messages that the policy received before a turn, for human readers. Training uses the
 * ids.
 */
function heardBefore(
  turnIndex: number,
  { turns }: ReadyRow,
  { turns: records, messages }: ReadyAttempt["episode"],
): string {
  const isFirst = turnIndex === 0 || turns[0]?.turnIndex === turnIndex;
  if (!isFirst) {
    const steps = records[turnIndex - 1]?.steps ?? [];
    return steps.map(({ observation }) => observation).join("\n");
  }
  return messages.find(({ role }) => role === "user")?.content ?? "";
}

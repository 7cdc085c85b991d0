import { verifiersColumns } from "../columns/verifiers-columns.ts";
import { namedGroupRules } from "./common-rules.ts";
import { lineageIn } from "./lineage-in.ts";
import { sampledTurns } from "./sampled-turns.ts";
import { textBefore } from "./text-before.ts";
import type { Exporter, ReadyAttempt, ReadyRow } from "../exporter.ts";

/**
 * Exports the nodes of a trace, one episode a line. Each row is a branch with its own root. A
 * node's logprobs have one entry for each sampled token. The first sampled node of a row has a link to
 * the node from which the row comes, if the lineage names one.
 *
 * **Source:** verifiers 0.4.0, verifiers/v1/graph.py (`MessageNode`) and verifiers/v1/trace.py
 * (`Branch`); verifiers/v1/semantic.py (`ParentLink`).
 */
export const verifiersExporter: Exporter = {
  trainer: "verifiers, Trace",
  isPerAttempt: true,
  layout: "lines",
  columns: verifiersColumns,
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "`is_truncated`" },
    segments: { action: "keep", why: "each becomes a branch of one trace" },
    components: { action: "keep", why: "`rewards` has a score and a weight for each" },
  },
  toRecords: (attempt) => [
    {
      id: attempt.rolloutId,
      group: attempt.groupId,
      reward: attempt.reward,
      ...rewardsOf(attempt),
      stop_condition: attempt.episode.stopReason,
      is_truncated: attempt.episode.outcome === "truncated",
      nodes: toNodes(attempt),
    },
  ],
};

/** Returns the components as verifiers' named rewards. */
function rewardsOf({ episode: { rewardComponents } }: ReadyAttempt): object {
  if (rewardComponents === undefined) return {};
  const rewards = Object.entries(rewardComponents).map(
    ([name, { value: score, weight }]) => [name, { score, weight }] as const,
  );
  return { rewards: Object.fromEntries(rewards) };
}

interface Node {
  readonly parent: number | null;
  readonly semantic_parents?: readonly { readonly node: number; readonly type: string }[];
  readonly message: { readonly role: "user" | "assistant"; readonly content: string };
  readonly sampled: boolean;
  readonly token_ids: readonly number[];
  readonly mask: readonly boolean[];
  readonly logprobs: readonly number[];
}

function toNodes({ rows, episode }: ReadyAttempt): readonly Node[] {
  const nodes: Node[] = [];
  const links = linksOf(rows);
  for (const [index, row] of rows.entries()) {
    let at = 0;
    let parent: number | null = null;
    let own = links[index]!;
    const push = (end: number, sampled: boolean, content: string): void => {
      const ids = row.tokenIds.slice(at, end);
      nodes.push({
        parent,
        ...(sampled && own.length > 0 && { semantic_parents: own }),
        message: { role: sampled ? "assistant" : "user", content },
        sampled,
        token_ids: ids,
        mask: ids.map(() => sampled),
        logprobs: sampled ? row.logprobs.slice(at, end) : [],
      });
      if (sampled) own = [];
      parent = nodes.length - 1;
      at = end;
    };
    for (const { turnIndex, start, end } of sampledTurns(row)) {
      push(start, false, textBefore(turnIndex, row, episode));
      push(end, true, episode.turns[turnIndex]?.text ?? "");
    }
  }
  return nodes;
}

/**
 * Returns the links of each row's first sampled node. A summary that no other row continues gets no
 * link: verifiers would not train it.
 */
function linksOf(rows: readonly ReadyRow[]): readonly NonNullable<Node["semantic_parents"]>[] {
  const places = nodesOfTurns(rows);
  const links = rows.map((row) => {
    const { from } = lineageIn(row) ?? {};
    const node = from && places[from.row]?.[from.turn];
    return node === undefined ? undefined : { node, type: from!.edge };
  });
  const resumed = new Set(links.map((link) => (link?.type === "compaction" ? link.node : -1)));
  return links.map((link, index) => {
    if (link === undefined) return [];
    const last = places[index]!.findLast((node) => node !== undefined) ?? -1;
    return link.type === "compaction_attempt" && !resumed.has(last) ? [] : [link];
  });
}

/** Returns the index of each turn's sampled node, by row and by place in the row's `turns`. */
function nodesOfTurns(rows: readonly ReadyRow[]): readonly (readonly (number | undefined)[])[] {
  let count = 0;
  return rows.map((row) => {
    const sampled = new Set(sampledTurns(row));
    return row.turns.map((turn) => {
      if (!sampled.has(turn)) return undefined;
      // Each sampled node follows the node of its prompt.
      count += 2;
      return count - 1;
    });
  });
}

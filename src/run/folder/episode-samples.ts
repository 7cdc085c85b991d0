import type { Episode } from "../../episode/episode.ts";
import type { RowLineage } from "../../episode/row-lineage.ts";
import { rowLineageOf } from "../../episode/row-lineage-of.ts";
import { formatMetadata } from "../../episode/turn/format-metadata.ts";
import { toSamples, type Sample } from "../../trajectory/sample.ts";
import type { EpisodeStory } from "./episode-row.ts";

/** Returns the training rows of an episode, with the facts that trainers' filters and rewards use. */
export function episodeSamples(episode: Episode): readonly Sample[] {
  const lineage = rowLineageOf(episode);
  return toSamples(episode.segments, episode, episode, (segment, index) =>
    sampleMetadata(episode, segment, lineage[index]),
  );
}

/**
 * Returns the facts about a row's episode that are not in its tokens.
 *
 * @param lineage - The row's lineage, if the attempt has several rows.
 */
export function sampleMetadata(
  episode: EpisodeStory,
  row: Pick<Sample, "turns">,
  lineage?: RowLineage,
): Readonly<Record<string, unknown>> {
  const { counts, sampleIndex, environment, split, taskIndex } = episode;
  const { sampledTokenCount: _sampled, tokenCount: _all, toolCallCount: _calls, ...kept } = counts;
  const about = { environment, split, taskIndex, sampleIndex, ...kept };
  return {
    ...about,
    ...formatMetadata(row, episode.turns),
    ...branchMetadata(row, episode.tree),
    ...(lineage !== undefined && { lineage }),
    ...rewardMetadata(episode, row),
  };
}

/** Returns the parts of the reward: the components of the attempt, and the rewards of the row's turns. */
function rewardMetadata(
  { rewardComponents, turnRewards }: EpisodeStory,
  { turns }: Pick<Sample, "turns">,
): object {
  return {
    ...(rewardComponents !== undefined && { rewardComponents }),
    ...(turnRewards !== undefined && {
      turnRewards: turns.map(({ turnIndex }) => turnRewards[turnIndex] ?? 0),
    }),
  };
}

/** The first turn of a row in the tree of an agent that manages its own conversations. JSON-able. */
interface RowBranch {
  /** The reason for which the conversation was started. */
  readonly cause: string;
  /** The index in the episode's `tree` of the first turn that the row trains. */
  readonly node: number;
  /** The turn that this turn continues and that another row trains; absent if this turn continues no other turn. */
  readonly afterTurn?: number;
}

function branchMetadata(
  { turns }: Pick<Sample, "turns">,
  tree: Episode["tree"],
): { readonly branch?: RowBranch } {
  const first = turns[0]?.turnIndex;
  const node = tree?.findIndex(({ turnIndex }) => turnIndex === first) ?? -1;
  if (tree === undefined || node === -1) return {};
  let root = node;
  // Damaged trees, in which a parent follows its child, are found by `verify`.
  for (let up = tree[root]?.parent; up !== undefined && up < root; up = tree[root]?.parent) {
    root = up;
  }
  const { parent } = tree[node]!;
  const afterTurn = parent === undefined ? undefined : tree[parent]?.turnIndex;
  const cause = tree[root]?.cause ?? "";
  return { branch: { cause, node, ...(afterTurn !== undefined && { afterTurn }) } };
}

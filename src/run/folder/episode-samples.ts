import type { Episode } from "../../episode/episode.ts";
import { formatMetadata } from "../../episode/turn/format-metadata.ts";
import { toSamples, type Sample } from "../../trajectory/sample.ts";
import type { EpisodeStory } from "./episode-row.ts";

/** The training rows of an episode, with what a trainer's filters and rewards may want to know. */
export function episodeSamples(episode: Episode): readonly Sample[] {
  return toSamples(episode.segments, episode, episode, {}).map((sample) => ({
    ...sample,
    metadata: sampleMetadata(episode, sample),
  }));
}

/** What a training row of the episode says besides its tokens. */
export function sampleMetadata(
  episode: EpisodeStory,
  row: Pick<Sample, "turns">,
): Readonly<Record<string, unknown>> {
  const { counts, sampleIndex, environment, split, taskIndex } = episode;
  const { sampledTokenCount: _sampled, tokenCount: _all, toolCallCount: _calls, ...kept } = counts;
  const about = { environment, split, taskIndex, sampleIndex, ...kept };
  return { ...about, ...formatMetadata(row, episode.turns), ...branchMetadata(row, episode.tree) };
}

/** Where a row of an agent that keeps its conversations itself begins. JSON-able. */
interface RowBranch {
  /** Why its conversation was begun. */
  readonly cause: string;
  /** Place in the episode's `tree` of the first turn that is trained in the row. */
  readonly node: number;
  /** The turn that this one continues and that another row trains; absent where it continues none. */
  readonly behindTurn?: number;
}

function branchMetadata(
  { turns }: Pick<Sample, "turns">,
  tree: Episode["tree"],
): { readonly branch?: RowBranch } {
  const first = turns[0]?.turnIndex;
  const node = tree?.findIndex(({ turnIndex }) => turnIndex === first) ?? -1;
  if (tree === undefined || node === -1) return {};
  let root = node;
  // A parent that does not come before its child is the verifier's to find.
  for (let up = tree[root]?.parent; up !== undefined && up < root; up = tree[root]?.parent) {
    root = up;
  }
  const { parent } = tree[node]!;
  const behindTurn = parent === undefined ? undefined : tree[parent]?.turnIndex;
  const cause = tree[root]?.cause ?? "";
  return { branch: { cause, node, ...(behindTurn !== undefined && { behindTurn }) } };
}

import type { EpisodeEntry, RunFacts } from "../episode-entry.ts";

/** Describes the rule of a success. `undefined` if the usual rule holds: the reward 1. */
export function successRule({
  facts,
  entries,
}: {
  readonly facts: Pick<RunFacts, "successThreshold">;
  readonly entries: readonly Pick<EpisodeEntry, "success">[];
}): string | undefined {
  const { successThreshold } = facts;
  if (successThreshold !== undefined)
    return `a success has a reward of ${successThreshold} or more`;
  const isOwn = entries.some(({ success }) => success !== undefined);
  return isOwn ? "the environment says what is a success" : undefined;
}

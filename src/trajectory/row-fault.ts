import { toSamples, type RolloutEnd, type RolloutIdentity } from "./sample.ts";
import type { Segment } from "./trajectory-recorder.ts";
import { verifySample, type SampleFacts } from "./verify-sample.ts";

/**
 * The first rule of `verifySample()` that a row of an episode breaks which came from elsewhere; nothing where
 * all rows keep them. Its segments can be used (see `segmentFault()`).
 */
export function rowFault(
  episode: RolloutIdentity & RolloutEnd & { readonly segments: readonly Segment[] },
  facts: SampleFacts,
): string | undefined {
  for (const sample of toSamples(episode.segments, episode, episode, {})) {
    const [violation] = verifySample(sample, facts);
    if (violation === undefined) continue;
    return `segments[${sample.segment}] breaks the rule ${violation.rule}: ${violation.detail}`;
  }
  return undefined;
}

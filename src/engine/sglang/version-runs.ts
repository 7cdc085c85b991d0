import type { VersionRun } from "../piece-reply.ts";
import type { JsonObject } from "../reply-reading.ts";
import { ReplyProblem, show } from "../reply-reading.ts";

/**
 * Which version sampled what. Newer releases say it token by token in `weight_versions`; the others
 * report only the version at the end, `weight_version`, which a turn that an update was slipped
 * under without an abort then carries as a whole.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/utils/weight_versions.py.
 *
 * @throws ReplyProblem
 */
export function readVersionRuns(meta: JsonObject, tokenCount: number): readonly VersionRun[] {
  const spans = meta["weight_versions"];
  if (spans === undefined || spans === null) {
    const version = meta["weight_version"];
    const isGiven = typeof version === "string" || typeof version === "number";
    return [{ tokenCount, policyVersion: isGiven ? `${version}` : "" }];
  }
  const runs: VersionRun[] = [];
  let place = 0;
  for (const span of Array.isArray(spans) ? (spans as unknown[]) : [spans]) {
    const { version, start, end } = (span ?? {}) as JsonObject;
    if (typeof version !== "string" || start !== place || typeof end !== "number" || end < place) {
      throw new ReplyProblem(
        `meta_info.weight_versions holds ${show(span)}`,
        `a span that begins at token ${place}`,
      );
    }
    if (end > place) runs.push({ tokenCount: end - place, policyVersion: version });
    place = end;
  }
  if (place === tokenCount) return runs;
  throw new ReplyProblem(
    `meta_info.weight_versions ends at token ${place}`,
    `the end, at ${tokenCount}`,
  );
}

import type { VersionRun } from "../http/piece-reply.ts";
import type { JsonObject } from "../http/reply-reading.ts";
import { readVersionSpans } from "../version-spans.ts";

/**
 * Which version sampled what. Newer releases say it token by token in `weight_versions`; the others
 * report only the version at the end, `weight_version`, which a turn that an update was slipped
 * under without an abort then carries as a whole.
 *
 * @throws ReplyProblem
 */
export function readVersionRuns(meta: JsonObject, tokenCount: number): readonly VersionRun[] {
  const runs = readVersionSpans(meta, { tokenCount, place: "meta_info." });
  if (runs !== undefined) return runs;
  const version = meta["weight_version"];
  const isGiven = typeof version === "string" || typeof version === "number";
  return [{ tokenCount, policyVersion: isGiven ? `${version}` : "" }];
}

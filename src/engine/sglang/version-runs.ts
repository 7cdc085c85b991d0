import type { JsonObject } from "../../values/is-object.ts";
import type { VersionRun } from "../http/piece-reply.ts";
import { readVersionSpans } from "../version-spans.ts";

/**
 * Reads the policy versions of the sampled tokens. Newer releases report them for each token in
 * `weight_versions`. Older ones report only the version at the end, `weight_version`, which then
 * applies to the complete turn even if the weights changed during it.
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

import type { JsonObject } from "../values/is-object.ts";
import type { VersionRun } from "./http/piece-reply.ts";
import { ReplyProblem, show } from "./http/reply-reading.ts";

/**
 * Reads the `weight_versions` of a reply: consecutive spans of tokens with the version that sampled
 * them, as SGLang and vLLM write them. Returns `undefined` if the reply has none.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/utils/weight_versions.py; vllm-project/vllm
 * vllm/v1/engine/output_processor.py (`_weight_version_spans`).
 *
 * @throws ReplyProblem
 */
export function readVersionSpans(
  parent: JsonObject,
  { tokenCount, place: before = "" }: { tokenCount: number; place?: string },
): readonly VersionRun[] | undefined {
  const spans = parent["weight_versions"];
  if (spans === undefined || spans === null) return undefined;
  const runs: VersionRun[] = [];
  let place = 0;
  for (const span of Array.isArray(spans) ? (spans as unknown[]) : [spans]) {
    const { version, start, end } = (span ?? {}) as JsonObject;
    if (typeof version !== "string" || start !== place || typeof end !== "number" || end < place) {
      throw new ReplyProblem(
        `${before}weight_versions holds ${show(span)}`,
        `a span that begins at token ${place}`,
      );
    }
    if (end > place) runs.push({ tokenCount: end - place, policyVersion: version });
    place = end;
  }
  if (place !== tokenCount) {
    throw new ReplyProblem(
      `${before}weight_versions ends at token ${place}`,
      `the end, at ${tokenCount}`,
    );
  }
  return runs;
}

import type { Segment } from "../../trajectory/trajectory-recorder.ts";

const lists = ["tokenIds", "lossMask", "logprobs", "policyVersions"] as const;

/** What is wrong with the ids of an episode that came from elsewhere; nothing where they can be used. */
export function segmentFault(segments: unknown): string | undefined {
  if (!Array.isArray(segments)) return "segments is no list";
  for (const [index, segment] of (segments as Partial<Segment>[]).entries()) {
    const at = `segments[${index}]`;
    if (typeof segment !== "object" || segment === null) return `${at} is no object`;
    const length = segment.tokenIds?.length;
    for (const name of lists) {
      const list: unknown = segment[name];
      if (!Array.isArray(list)) return `${at}.${name} is no list`;
      if (list.length !== length) return `${at}.${name} has ${list.length} entries, not ${length}`;
    }
    const { tokenIds = [], lossMask = [], logprobs = [], policyVersions = [] } = segment;
    if (!tokenIds.every((id) => Number.isSafeInteger(id) && id >= 0)) return `${at}.tokenIds`;
    if (!lossMask.every((bit) => bit === 0 || bit === 1)) return `${at}.lossMask`;
    if (!logprobs.every((value) => typeof value === "number")) return `${at}.logprobs`;
    if (!policyVersions.every((value) => typeof value === "string")) return `${at}.policyVersions`;
    if (!Array.isArray(segment.spans) || !Array.isArray(segment.turns)) return `${at}.turns`;
    if (!Number.isSafeInteger(segment.promptLength)) return `${at}.promptLength`;
  }
  return undefined;
}

import { isObject } from "../values/is-object.ts";
import { isSampledLogprob } from "../values/logprob-range.ts";
import { isTokenId } from "../engine/token-id.ts";
import { whyNotJson } from "../json/why-not-json.ts";
import type { Segment } from "./segment.ts";
import { isCount } from "./violation.ts";

const lists = ["tokenIds", "lossMask", "logprobs", "policyVersions"] as const;

/**
 * Returns the fault of the segments of a custom player's or a worker's episode, or `undefined` if they are valid.
 * Checks long lists without writing them as JSON.
 */
export function segmentFault(segments: unknown): string | undefined {
  if (!Array.isArray(segments)) return "segments is not a list";
  for (const [index, segment] of (segments as Partial<Segment>[]).entries()) {
    const at = `segments[${index}]`;
    if (typeof segment !== "object" || segment === null) return `${at} is not an object`;
    const length = segment.tokenIds?.length;
    for (const name of lists) {
      const list: unknown = segment[name];
      if (!Array.isArray(list)) return `${at}.${name} is not a list`;
      if (list.length !== length) return `${at}.${name} has ${list.length} entries, not ${length}`;
      const hole = findHole(list);
      if (hole >= 0) return `${at}.${name}[${hole}] is missing`;
    }
    const { tokenIds = [], lossMask = [], logprobs = [], policyVersions = [] } = segment;
    if (!tokenIds.every((id) => isTokenId(id))) return `${at}.tokenIds`;
    if (!lossMask.every((bit) => bit === 0 || bit === 1)) return `${at}.lossMask`;
    const isLogprob = (value: unknown, index: number): boolean =>
      lossMask[index] === 1 ? isSampledLogprob(value) : value === 0;
    if (!logprobs.every(isLogprob)) return `${at}.logprobs`;
    if (!policyVersions.every((value) => typeof value === "string")) return `${at}.policyVersions`;
    if (!Array.isArray(segment.spans) || !Array.isArray(segment.turns)) return `${at}.turns`;
    if (![...segment.spans, ...segment.turns].every(isObject)) return `${at}.turns`;
    const { promptLength } = segment;
    if (!isCount(promptLength) || promptLength > tokenIds.length) return `${at}.promptLength`;
    const rest = Object.entries(segment).filter(([name]) => !lists.includes(name as never));
    if (rest.some(([, value]) => whyNotJson(value) !== undefined)) return `${at} is not JSON`;
  }
  return undefined;
}

/** Returns the index of the first hole of a list, which `every()` would skip, or -1. */
function findHole(list: readonly unknown[]): number {
  return list.findIndex((entry) => entry === undefined);
}

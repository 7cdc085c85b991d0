import type { ReadyRow } from "../exporter.ts";
import { isWhole } from "../prepare-group.ts";

/**
 * Returns the least and the greatest policy version of the trained tokens, or `undefined` if a version
 * is not a whole number.
 */
export function versionRange(
  rows: readonly Pick<ReadyRow, "policyVersions" | "lossMask">[],
): { readonly least: number; readonly most: number } | undefined {
  let [least, most] = [Infinity, -Infinity];
  for (const { policyVersions, lossMask } of rows) {
    for (const [index, version] of policyVersions.entries()) {
      if (lossMask[index] === 0) continue;
      if (!isWhole(version)) return undefined;
      least = Math.min(least, Number(version));
      most = Math.max(most, Number(version));
    }
  }
  return { least, most };
}

import type { ExportKind, ExportNote } from "./exporter.ts";
import { exporters, type ExportTarget } from "./exporters.ts";

const words: Readonly<Record<ExportKind, string>> = {
  truncated: "met a limit",
  failed: "failed",
  unscored: "was not scored",
  aborted: "is not finished",
  empty: "has no sampled tokens",
  segments: "has several rows",
  differentPrompts: "begins with another prompt than an attempt before it",
  mixedVersions: "was sampled by several policy versions",
  unnamedVersions: "has tokens of an unnamed version",
  environmentTail: "continues after its last sampled token",
  uncomputedTail: "continues after its last computed token",
  components: "has components of its reward",
  turnRewards: "has rewards of its turns",
};

/** Describes for people what an export left out or cut, and why. */
export function sayNote(
  { rolloutId, kind, action, tokenCount, rowCount }: ExportNote,
  to: ExportTarget,
): string {
  const { why } = exporters[to].rules[kind];
  if (action === "cut") return `Cut ${tokenCount} tokens of ${rolloutId}: ${why}`;
  if (action === "drop") {
    const what = kind === "components" ? "the components of the reward" : "the rewards of turns";
    return `Left out ${what} of ${rolloutId}: ${why}`;
  }
  if (action === "one-row") {
    const rows = rowCount === 1 ? "1 row" : `${rowCount} rows`;
    return `Left out ${rows} of ${rolloutId} with ${tokenCount} sampled tokens: ${why}`;
  }
  const what = action === "leave-out-group" ? `the group of ${rolloutId}` : rolloutId;
  return `Left out ${what}: ${rolloutId} ${words[kind]}, and ${why}`;
}

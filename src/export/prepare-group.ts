import { UsageError } from "../errors.ts";
import type { Sample } from "../trajectory/sample.ts";
import type {
  ExportKind,
  ExportMember,
  ExportNote,
  ExportRules,
  ExportSurroundings,
  ReadyAttempt,
  ReadyRow,
} from "./exporter.ts";

/** A group after an exporter's rules were applied, with notes about each omission. */
interface PreparedGroup {
  readonly attempts: readonly ReadyAttempt[];
  readonly notes: readonly ExportNote[];
}

/**
 * Applies an exporter's rules to a group: leaves out rows that the trainer would misread, cuts
 * tails that it cannot read, and reports both.
 * @throws UsageError if the rules refuse a row.
 */
export function prepareGroup(
  members: readonly ExportMember[],
  rules: ExportRules,
  surroundings: ExportSurroundings = {},
): PreparedGroup {
  const notes: ExportNote[] = [];
  const kept: Omit<ReadyAttempt, "advantage">[] = [];
  for (const [repetition, member] of members.entries()) {
    const { rolloutId, episode, place } = member;
    const kind = findObstacle(member, rules);
    if (kind !== undefined) {
      const { action } = rules[kind];
      if (action === "leave-out-group") {
        return { attempts: [], notes: [{ rolloutId, kind, action }] };
      }
      notes.push({ rolloutId, kind, action: "leave-out" });
      continue;
    }
    const rows: ReadyRow[] = [];
    for (const sample of member.samples) {
      if (!sample.lossMask.includes(1)) continue;
      const { row, cutCount } = toReadyRow(sample, rules, surroundings);
      if (cutCount > 0) {
        const note = { kind: "environmentTail", action: "cut", tokenCount: cutCount } as const;
        notes.push({ rolloutId, ...note });
      }
      rows.push(row);
    }
    // `findObstacle()` has returned for attempts without an episode or a reward.
    const { groupId, reward } = episode!;
    kept.push({ rolloutId, groupId, episode: episode!, reward: reward!, repetition, place, rows });
  }
  const mean = kept.reduce((sum, { reward }) => sum + reward, 0) / kept.length;
  return {
    attempts: kept.map((attempt) => ({ ...attempt, advantage: attempt.reward - mean })),
    notes,
  };
}

/** Returns the first kind whose rule keeps a member out of the export. */
function findObstacle(
  { episode, samples }: ExportMember,
  rules: ExportRules,
): ExportKind | undefined {
  if (episode === undefined || episode.outcome === "aborted") return "aborted";
  if (episode.outcome === "failed") return "failed";
  if (episode.reward === undefined) return "unscored";
  const trained = samples.filter(({ lossMask }) => lossMask.includes(1));
  if (trained.length === 0) return "empty";
  if (samples.length > 1 && rules.segments.action !== "keep") return "segments";
  return undefined;
}

function toReadyRow(
  sample: Sample,
  rules: ExportRules,
  { policyVersion, versionRemedy }: ExportSurroundings,
): { readonly row: ReadyRow; readonly cutCount: number } {
  const { tokenIds, promptLength, lossMask, logprobs, policyVersions, turns } = sample;
  const end =
    rules.environmentTail.action === "cut" ? lossMask.lastIndexOf(1) + 1 : tokenIds.length;
  const named = policyVersions.slice(0, end).map((version, index) => {
    if (lossMask[index] === 0 || isWhole(version)) return version;
    if (isUnnamed(version) && policyVersion !== undefined) return String(policyVersion);
    if (rules.unnamedVersions.action === "refuse") {
      throw unnamed(sample, index, version, versionRemedy);
    }
    return version;
  });
  const row = {
    sample,
    tokenIds: tokenIds.slice(0, end),
    promptLength,
    lossMask: lossMask.slice(0, end),
    logprobs: logprobs.slice(0, end),
    policyVersions: named,
    turns,
  };
  return { row, cutCount: tokenIds.length - end };
}

/** True if a version is a whole number in the form that trainers write. */
export function isWhole(version: string): boolean {
  return /^(0|[1-9]\d{0,14})$/.test(version);
}

/** True if the engine reported no version. SGLang calls its first weights `default`. */
function isUnnamed(version: string): boolean {
  return version === "" || version === "default";
}

function unnamed(
  { rolloutId, segment }: Sample,
  index: number,
  version: string,
  versionRemedy = "`policyVersion`",
): UsageError {
  const remedy = isUnnamed(version)
    ? `say which version played with ${versionRemedy}`
    : "announce whole numbers to the engine";
  return new UsageError(
    `Cannot export ${rolloutId}: policyVersions[${index}] of segment ${segment} is ` +
      `${JSON.stringify(version)}, and this trainer counts versions in whole numbers; ${remedy}`,
  );
}

import type { EpisodeStory } from "../run/folder/episode-row.ts";
import { partsIn } from "../columns/column-part.ts";
import { isOfAllTokens, namesOf, type ColumnSpecs } from "../columns/column-specs.ts";
import { UsageError } from "../errors.ts";
import { turnReturns } from "../run/schedule/turn-advantages.ts";
import { countTrained } from "../trajectory/count-trained.ts";
import type { Sample } from "../trajectory/sample.ts";
import { hasSamePrompt } from "./has-same-prompt.ts";
import type {
  Exporter,
  ExportKind,
  ExportMember,
  ExportNote,
  ExportRules,
  ExportSurroundings,
  ReadyAttempt,
  ReadyRow,
} from "./exporter.ts";
import { mean } from "../values/sum.ts";

/** A group after an exporter's rules were applied, with notes about each omission. */
interface PreparedGroup {
  readonly attempts: readonly ReadyAttempt[];
  readonly notes: readonly ExportNote[];
}

/** The members of an exporter that decide which attempts and rows are exported. */
type PrepareRules = Pick<
  Exporter,
  "rules" | "chooseRow" | "hasTurnAdvantages" | "takesTurnRewards"
>;

/**
 * Applies an exporter's rules to a group: leaves out rows that the trainer would misread, cuts
 * tails that it cannot read, and reports both. Never exports a row without a trained token.
 * @throws UsageError if the rules refuse a row.
 */
export function prepareGroup(
  members: readonly ExportMember[],
  exporter: PrepareRules,
  surroundings: ExportSurroundings = {},
): PreparedGroup {
  const { rules } = exporter;
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
    const { rows: samples, leftOut } = chooseRows(member.samples, exporter);
    if (leftOut.length > 0) {
      const tokenCount = leftOut.reduce((sum, { lossMask }) => sum + countTrained(lossMask), 0);
      const note = { kind: "segments", action: "one-row", tokenCount } as const;
      notes.push({ rolloutId, ...note, rowCount: leftOut.length });
    }
    const rows: ReadyRow[] = [];
    for (const sample of samples) {
      const { row, cut } = toReadyRow(sample, rules, surroundings);
      if (cut !== undefined) notes.push({ rolloutId, action: "cut", ...cut });
      rows.push(row);
    }
    const dropped = droppedParts(episode!, exporter, { ...surroundings, rowCount: samples.length });
    notes.push(...dropped.map((part) => ({ rolloutId, kind: part, action: "drop" }) as const));
    // `findObstacle()` has returned for attempts without an episode or a reward.
    const { groupId, reward } = episode!;
    kept.push({ rolloutId, groupId, episode: episode!, reward: reward!, repetition, place, rows });
  }
  const other = rules.differentPrompts.action === "keep" ? undefined : findOtherPrompt(kept);
  if (other !== undefined) {
    const { rolloutId } = other;
    return {
      attempts: [],
      notes: [{ rolloutId, kind: "differentPrompts", action: "leave-out-group" }],
    };
  }
  return { attempts: withAdvantages(kept, surroundings), notes };
}

/** Returns the first attempt that begins with another prompt than the first one, or `undefined`. */
function findOtherPrompt<Attempt extends Pick<ReadyAttempt, "rows">>(
  attempts: readonly Attempt[],
): Attempt | undefined {
  const first = attempts[0]?.rows[0];
  return attempts.find(({ rows }) => !hasSamePrompt(rows[0]!, first!));
}

/** Adds the advantages of plain GRPO: the reward minus the group's mean, or the return of each turn minus that mean. */
function withAdvantages(
  attempts: readonly Omit<ReadyAttempt, "advantage">[],
  { turnDiscount }: ExportSurroundings,
): readonly ReadyAttempt[] {
  const meanReward = mean(attempts.map(({ reward }) => reward));
  if (turnDiscount === undefined) {
    return attempts.map((attempt) => ({ ...attempt, advantage: attempt.reward - meanReward }));
  }
  const returns = attempts.map(({ episode }) => turnReturns(episode, turnDiscount));
  const meanReturn = mean(returns.map(([first = 0]) => first));
  return attempts.map((attempt, index) => ({
    ...attempt,
    advantage: attempt.reward - meanReward,
    turnAdvantages: returns[index]!.map((value) => value - meanReturn),
  }));
}

/** Returns the parts of an attempt's reward that the trainer does not get. */
function droppedParts(
  { rewardComponents, turnRewards }: EpisodeStory,
  { rules, hasTurnAdvantages, takesTurnRewards }: PrepareRules,
  { turnDiscount, hasTurnRewards, rowCount }: ExportSurroundings & { readonly rowCount: number },
): readonly ("components" | "turnRewards")[] {
  const usesTurns =
    (hasTurnAdvantages === true && turnDiscount !== undefined) ||
    // In the step-wise mode for several rows, SkyRL reads one reward an attempt.
    (takesTurnRewards === true && hasTurnRewards === true && rowCount === 1);
  const parts = { components: rewardComponents, turnRewards: usesTurns ? undefined : turnRewards };
  return (["components", "turnRewards"] as const).filter(
    (kind) => parts[kind] !== undefined && rules[kind].action === "drop",
  );
}

/** Returns the reason why the rules leave an attempt out, or `undefined` if they keep it. */
function findObstacle(
  { episode, samples }: ExportMember,
  rules: ExportRules,
): ExportKind | undefined {
  if (episode === undefined || episode.outcome === "aborted") return "aborted";
  if (episode.outcome === "failed") return "failed";
  if (episode.reward === undefined) return "unscored";
  const trainedCount = samples.filter(({ lossMask }) => lossMask.includes(1)).length;
  if (trainedCount === 0) return "empty";
  const isLeftOut = rules.segments.action.startsWith("leave-out");
  return trainedCount > 1 && isLeftOut ? "segments" : undefined;
}

/** Returns the rows with a trained token. If the trainer takes one row an attempt, returns only that row. */
function chooseRows(
  samples: readonly Sample[],
  { rules, chooseRow }: Pick<Exporter, "rules" | "chooseRow">,
): { readonly rows: readonly Sample[]; readonly leftOut: readonly Sample[] } {
  const rows = samples.filter(({ lossMask }) => lossMask.includes(1));
  if (rules.segments.action !== "one-row" || chooseRow === undefined) return { rows, leftOut: [] };
  const chosen = chooseRow(rows);
  return { rows: [chosen], leftOut: rows.filter((row) => row !== chosen) };
}

function toReadyRow(
  sample: Sample,
  rules: ExportRules,
  { policyVersion, versionRemedy, columns = {} }: ExportSurroundings,
): {
  readonly row: ReadyRow;
  readonly cut: (Pick<ExportNote, "tokenCount"> & { readonly kind: TailKind }) | undefined;
} {
  const { tokenIds, promptLength, lossMask, logprobs, policyVersions, turns } = sample;
  const kind = tailKindOf(sample, rules, columns);
  const end = kind === undefined ? tokenIds.length : lossMask.lastIndexOf(1) + 1;
  const named = policyVersions.slice(0, end).map((version, index) => {
    if (lossMask[index] === 0 || isWhole(version)) return version;
    if (isUnnamed(version) && policyVersion !== undefined) return String(policyVersion);
    if (rules.unnamedVersions.action === "refuse") {
      throw unnamed(sample, index, version, versionRemedy);
    }
    return version;
  });
  const row = {
    sample: kind === "uncomputedTail" ? cutSample(sample, end) : sample,
    stored: sample,
    tokenIds: tokenIds.slice(0, end),
    promptLength,
    lossMask: lossMask.slice(0, end),
    logprobs: logprobs.slice(0, end),
    policyVersions: named,
    turns,
  };
  const tokenCount = tokenIds.length - end;
  return { row, cut: kind === undefined || tokenCount === 0 ? undefined : { kind, tokenCount } };
}

/** The kinds of tokens after the last sampled one. */
type TailKind = "environmentTail" | "uncomputedTail";

/** Returns the reason to cut a row after its last sampled token, or `undefined` if the row stays as it is. */
function tailKindOf(
  sample: Sample,
  rules: ExportRules,
  columns: ColumnSpecs,
): TailKind | undefined {
  if (rules.environmentTail.action === "cut") return "environmentTail";
  const isShort = namesOf(columns).some((name) => {
    const last = partsIn(sample, name)?.at(-1);
    const needed = sample.tokenIds.length - 1;
    return isOfAllTokens(name) && last !== undefined && last.from + last.rows < needed;
  });
  return isShort ? "uncomputedTail" : undefined;
}

/** Returns a row cut to its first `end` tokens. */
function cutSample(sample: Sample, end: number): Sample {
  return {
    ...sample,
    tokenIds: sample.tokenIds.slice(0, end),
    lossMask: sample.lossMask.slice(0, end),
    logprobs: sample.logprobs.slice(0, end),
    policyVersions: sample.policyVersions.slice(0, end),
  };
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

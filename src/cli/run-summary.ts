import path from "node:path";
import type { RunFolder } from "../run/folder/run-folder.ts";
import type { RunResult } from "../run/run-rollouts.ts";
import { shellWord } from "../text/shell-word.ts";
import { formatBytes } from "../text/format-bytes.ts";
import type { UserSpending } from "../user/user.ts";
import { programName } from "./own-command.ts";
import { rowsText } from "./rows-text.ts";
import type { EpisodesScored } from "../composition/open-episode-teacher.ts";
import { formatCount } from "../text/format-count.ts";

/** Formats the result of a run for people. */
export function printRunSummary(
  { progress, end, slime }: RunResult,
  folder: RunFolder,
  teacher?: EpisodesScored,
): string {
  const { finished, outcomes, failures, planned, stopReasons } = progress;
  const masked = progress.tokenCount - progress.sampledTokenCount;
  const rows: [string, string][] = [
    [
      "episodes",
      `${planned === undefined ? finished : `${finished} of ${planned}`}: ${outcomes.completed} completed, ` +
        `${outcomes.truncated} truncated, ${outcomes.failed} failed`,
    ],
    ["ended by", listCounts(stopReasons)],
    ["reward", describeReward(progress)],
    [
      "tokens",
      `${formatCount(progress.sampledTokenCount)} sampled (trained), ${formatCount(masked)} masked` +
        (progress.sampledTokensPerSecond === 0
          ? ""
          : `, ${formatCount(progress.sampledTokensPerSecond)} sampled/s`),
    ],
    [
      "turns",
      `${formatCount(progress.turnCount)}, with ${formatCount(progress.toolCallCount)} tool calls ` +
        `and ${formatCount(progress.formatErrorCount)} malformed turns`,
    ],
  ];
  if (progress.userUsage.callCount > 0) {
    rows.push(["user model", describeSpending(progress.userUsage)]);
  }
  if (Object.keys(failures).length > 0) {
    rows.push(["failures", `${listCounts(failures)}; --retry-failed plays them again`]);
  }
  if (progress.firstFailure !== undefined) rows.push(["the first", progress.firstFailure]);
  const { troubles, firstTrouble } = progress;
  if (firstTrouble !== undefined) {
    rows.push(["troubles", `${listCounts(troubles)}; no episode was lost to them`]);
    rows.push(["the first", firstTrouble]);
  }
  const { unenforced = {}, refused = {} } = progress.gateway ?? {};
  if (Object.keys(unenforced).length > 0) rows.push(["unenforced", listCounts(unenforced)]);
  if (Object.keys(refused).length > 0) rows.push(["refused", listCounts(refused)]);
  if (progress.retried > 0) rows.push(["retried", `${progress.retried} failed attempts`]);
  if (teacher !== undefined) {
    const { name, scoredCount, knownCount, leftOutCount } = teacher;
    const before = knownCount === 0 ? "" : `, ${formatCount(knownCount)} before`;
    const left = leftOutCount === 0 ? "" : `, ${formatCount(leftOutCount)} left out`;
    rows.push(["teacher", `${name}: ${formatCount(scoredCount)} rows scored${before}${left}`]);
  }
  const ofThis = progress.resumed > 0 ? " (this start)" : "";
  rows.push(["time", `${(progress.elapsedMs / 1000).toFixed(1)} s${ofThis}`]);
  // The folder's name as the user wrote it is familiar and shorter.
  const shown = (file: string): string => path.join(folder.name, path.basename(file));
  rows.push(["samples", shown(folder.samplesFile)]);
  if (folder.columnBytes !== undefined) {
    const { found } = folder.manifest;
    const names = Object.keys(found["columns"] ?? {}).join(", ");
    // Worker processes write files of their own, which this process does not count.
    const size = folder.columnBytes === 0 ? "" : `: ${formatBytes(folder.columnBytes)}${ofThis}`;
    rows.push(["columns", `${names}${size} in ${path.join(folder.name, "columns")}`]);
  }
  if (folder.slimeFile !== undefined) rows.push(["for slime", shown(folder.slimeFile)]);
  if (slime?.leftOut !== undefined) {
    rows.push(["not for it", `groups that slime cannot be given: ${listCounts(slime.leftOut)}`]);
  }
  return `\n${headline[end]}\n\n${rowsText(rows)}`;
}

/** Names the command that people need after a run. Empty after one that has not finished, which says so itself. */
export function nextStep(end: RunResult["end"], { name }: Pick<RunFolder, "name">): string {
  return end === "finished" ? `\nNext, look at it: ${programName} view ${shellWord(name)}\n` : "";
}

/**
 * Describes problems that failed no episode, for commands without a summary. Empty if there were
 * none.
 */
export function describeTroubles({
  troubles,
  firstTrouble,
}: RunResult["progress"]): string | undefined {
  if (firstTrouble === undefined) return undefined;
  return `troubles that no episode was lost to: ${listCounts(troubles)}; the first: ${firstTrouble}`;
}

const headline: Readonly<Record<RunResult["end"], string>> = {
  finished: "The run is finished.",
  interrupted:
    "The run was interrupted. Start the same command again to continue where it stopped.",
  "too-many-failures":
    "The run stopped: too many episodes failed in a row. Mend the cause, then start the same command " +
    "again with --retry-failed.",
};

/** Describes the mean reward, and the episodes that it leaves out. */
function describeReward({ rewardMean, scored, unscored }: RunResult["progress"]): string {
  const leftOut = Object.values(unscored).reduce<number>((sum, count = 0) => sum + count, 0);
  const mean =
    rewardMean === undefined
      ? "none (no episode was scored)"
      : `${rewardMean.toFixed(3)} mean over ${scored} scored episodes`;
  return leftOut === 0 ? mean : `${mean}; ${leftOut} left out: ${listCounts(unscored)}`;
}

function describeSpending(spending: UserSpending): string {
  const { callCount, inputTokenCount, outputTokenCount, costUsd } = spending;
  return (
    `${formatCount(callCount)} calls, ${formatCount(inputTokenCount)} tokens in, ` +
    `${formatCount(outputTokenCount)} out` +
    (costUsd === undefined ? "" : `, $${costUsd.toFixed(4)}`)
  );
}

function listCounts(counts: Readonly<Partial<Record<string, number>>>): string {
  const entries = Object.entries(counts).map(([name, count]) => `${name} ×${count}`);
  return entries.length === 0 ? "–" : entries.join(", ");
}

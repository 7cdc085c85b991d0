import type { Command } from "commander";
import { differenceOf } from "../../environment/state/difference.ts";
import { describeDifference } from "../../report/describe-difference.ts";
import { replayEpisode, type ReplayVerdict } from "../../run/recording/replay-episode.ts";
import { createReplay, openRecordedRun } from "../../composition/open-replay.ts";
import { runSettings } from "../../composition/config/run-config.ts";
import type { Setting } from "../../composition/config/setting.ts";
import { addSettings, givenSettings } from "../option.ts";
import { findRecorded, nothingRecorded } from "../find-rollout.ts";
import { hideSecrets, writeOut } from "../write-out.ts";

/** The settings for folders on this machine, which may differ from those of the run. */
const placeSettings: readonly Setting[] = runSettings.filter(({ name }) =>
  ["env", "data", "model"].includes(name),
);

interface ReplayFlags extends Readonly<Record<string, unknown>> {
  readonly rescoreReward?: true;
  readonly json?: true;
}

/** `turnwright replay`: plays recorded episodes again, without an engine. */
export function defineReplay(command: Command): void {
  command
    .description(
      "Plays recorded episodes again from their recorded inputs: no engine, no user's model and no key " +
        "are asked. Each must come out the same to the byte, rows included; where one does not, the first " +
        "place where it differs is named, and the exit status is 1.\n\n" +
        "With --rescore-reward the environment scores each conversation again, so that a changed scoring " +
        "shows which rewards change and why. Settings are the run's; flags say where its environment, data " +
        "and model folder are on this machine.",
    )
    .option("--rescore-reward", "score again, and show the rewards that change")
    .option("--json", "one JSON line an episode");
  addSettings(command, placeSettings);
  command.action(replay);
}

async function replay(
  place: string,
  episode: string | undefined,
  flags: ReplayFlags,
): Promise<void> {
  const recorded = await openRecordedRun(place);
  const wanted =
    episode === undefined
      ? recorded.rolloutIds
      : [findRecorded(recorded.rolloutIds, episode, place)];
  await using run = await createReplay(recorded, await givenSettings(placeSettings, flags));
  const { redactor, setup } = run;
  hideSecrets(redactor);
  const scoreAnew = flags.rescoreReward === true;
  const counts = { identical: 0, differs: 0, diverged: 0, unfinished: 0, unrecorded: 0 };
  if (episode === undefined) counts.unrecorded = recorded.unrecordedIds.length;
  let changedCount = 0;
  for (const rolloutId of wanted) {
    const stored = await recorded.read(rolloutId);
    const verdict: ReplayVerdict =
      stored === undefined
        ? { type: "unrecorded", reason: "its recording is damaged from its first line on" }
        : await replayEpisode(stored, { setup, redactor, scoreAnew });
    counts[verdict.type] += 1;
    const reward = rewardChange(stored?.row?.reward, verdict);
    if (reward?.isChanged === true) changedCount += 1;
    if (flags.json === true) {
      await writeOut(`${JSON.stringify(toEvent(rolloutId, verdict, reward))}\n`);
    } else if (scoreAnew ? reward?.isChanged === true : verdict.type !== "identical") {
      await writeOut(`${rolloutId}: ${describeVerdict(verdict, scoreAnew ? reward : undefined)}\n`);
    } else if (episode !== undefined) {
      const isSame = scoreAnew && reward !== undefined;
      const found = isSame ? "the same reward" : describeVerdict(verdict, undefined);
      await writeOut(`${rolloutId}: ${found}\n`);
    }
  }
  const soundCount = counts.identical + counts.unfinished + (scoreAnew ? counts.differs : 0);
  const isWrong = counts.diverged > 0 || soundCount === 0 || (!scoreAnew && counts.differs > 0);
  if (isWrong) process.exitCode = 1;
  const { identical, differs, diverged, unfinished, unrecorded } = counts;
  const summary = scoreAnew
    ? `${identical + differs} scored again, ${changedCount} rewards change, ${diverged} cannot be played again`
    : `${identical} identical, ${differs + diverged} differ`;
  const none = wanted.length === 0 ? `: ${nothingRecorded}` : "";
  const rest =
    (unfinished === 0 ? none : `, ${unfinished} not finished`) +
    // Without a recording, an earlier message already says so.
    (unrecorded === 0 || wanted.length === 0 ? "" : `, ${unrecorded} not recorded`);
  if (flags.json === true) {
    await writeOut(`${JSON.stringify({ type: "summary", ...counts, changedCount })}\n`);
  } else {
    await writeOut(`${summary}${rest}\n`);
  }
}

interface RewardChange {
  readonly before: number | undefined;
  readonly now: number | undefined;
  readonly isChanged: boolean;
  readonly details: Readonly<Record<string, unknown>> | undefined;
}

function rewardChange(
  before: number | undefined,
  verdict: ReplayVerdict,
): RewardChange | undefined {
  if (!("episode" in verdict)) return undefined;
  const { reward: now, rewardDetails: details } = verdict.episode;
  return { before, now, isChanged: before !== now, details };
}

function describeVerdict(verdict: ReplayVerdict, reward: RewardChange | undefined): string {
  if (reward !== undefined) {
    const difference = differenceOf(reward.details);
    const lines = difference === undefined ? [] : describeDifference(difference);
    const why = lines.map((line) => `\n  ${line}`).join("");
    return `reward was ${reward.before ?? "none"} and is ${reward.now ?? "none"}${why}`;
  }
  switch (verdict.type) {
    case "identical":
      return "identical";
    case "differs":
      return `differs: ${verdict.place}`;
    case "diverged":
      return `differs: ${verdict.reason}`;
    case "unfinished":
      return `not finished: ${verdict.reason}`;
    case "unrecorded":
      return `not recorded: ${verdict.reason}`;
  }
}

function toEvent(rolloutId: string, verdict: ReplayVerdict, reward: RewardChange | undefined) {
  const { type } = verdict;
  return {
    type,
    rolloutId,
    ...("place" in verdict && { place: verdict.place }),
    ...("reason" in verdict && { reason: verdict.reason }),
    ...(reward && { reward: { before: reward.before, now: reward.now } }),
  };
}

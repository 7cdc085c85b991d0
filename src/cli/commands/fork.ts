import { requireRunRows } from "../../run/require-rows.ts";
import type { Command } from "commander";
import { randomInt } from "node:crypto";
import { access } from "node:fs/promises";
import path from "node:path";
import { inputsBefore } from "../../episode/inputs/input.ts";
import { UsageError } from "../../errors.ts";
import { openStoredRun } from "../../report/read-run.ts";
import { planRun, type PlanRecord } from "../../run/schedule/plan-run.ts";
import { openColumnFolder } from "../../run/columns/column-folder.ts";
import { toPromptTime } from "../../run/prompt-time.ts";
import {
  describeCopy,
  describeOtherAttempt,
  isOfOtherAttempt,
  isOfOtherRun,
} from "../../run/recording/recording-line.ts";
import { recordedAssignment } from "../../run/recording/replay-episode.ts";
import { forkGroupId } from "../../run/attempt/shared-prefix.ts";
import { createRun } from "../../composition/create-run.ts";
import { defaultUser, openRecordedRun, requireKnownSetup } from "../../composition/open-replay.ts";
import { readRunConfig, runSettings } from "../../composition/config/run-config.ts";
import { createRunRedactor } from "../../composition/run-secrets.ts";
import type { Setting } from "../../composition/config/setting.ts";
import { storedSettings } from "../../composition/config/stored-settings.ts";
import { findRecorded } from "../find-rollout.ts";
import { stopOnInterrupt } from "../interrupt.ts";
import { addSettings, givenSettings } from "../option.ts";
import { groupSettings } from "../setting-groups.ts";
import { ownCommand } from "../own-command.ts";
import { setExitStatus } from "../play-run.ts";
import { nextStep, printRunSummary } from "../run-summary.ts";
import { hideSecrets, writeError, writeOut } from "../write-out.ts";

/** The settings that a fork keeps from the run, because they shape the conversation so far. */
const keptNames: readonly string[] = [
  "env",
  "split",
  "tasks",
  "samples",
  "seed",
  "out",
  "user",
  "epochs",
  "groups",
  "branch-at",
  "record",
];

const forkSettings: readonly Setting[] = runSettings.filter(
  ({ name }) => !keptNames.includes(name),
);

interface ForkFlags extends Readonly<Record<string, unknown>> {
  readonly turn: string;
  readonly samples: string;
  readonly seed?: string;
  readonly out?: string;
}

/** `turnwright fork`: continues a recorded conversation from one of its turns with new samples. */
export function defineFork(command: Command): void {
  command
    .description(
      "Plays a recorded episode again up to a turn, and continues it with new samples: other branches of the " +
        "same conversation. Settings are the run's, unless flags name others, such as another engine. What " +
        "is shared is the prompt of the branches' rows: it is trained only in the rows of the original " +
        "episode.",
    )
    .requiredOption("--turn <k>", "the first turn to sample again, from 0")
    .option("--samples <n>", "branches", "4")
    .option(
      "--seed <n>",
      "names the branches, and seeds them where there is a sampling-seed (default: a drawn one, which the " +
        "folder keeps)",
    )
    .option("--out <dir>", "the branches' folder (default: a new one below runs/)");
  addSettings(command, forkSettings, groupSettings);
  command.action(fork);
}

async function fork(place: string, episode: string, flags: ForkFlags): Promise<void> {
  const turnIndex = readCount("turn", flags.turn, 0);
  const size = readCount("samples", flags.samples, 1);
  const recorded = await openRecordedRun(place);
  requireRunRows(recorded.manifest.found, `fork an episode of ${place}`);
  const rolloutId = findRecorded(recorded.rolloutIds, episode, place);
  const found = await recorded.read(rolloutId);
  const inputs = found && inputsBefore(found.recorded.inputs, turnIndex);
  if (found === undefined || inputs === undefined) {
    throw new UsageError(
      `Cannot fork ${rolloutId} at turn ${turnIndex}: its recording has no such turn, expected one of ` +
        `${found?.row?.turns.length ?? "its"} turns, from 0`,
    );
  }
  if (isOfOtherRun(found.recorded.begin, found.runId)) {
    throw new UsageError(
      `Cannot fork ${rolloutId}: ${describeCopy(found.recorded.begin, found.runId)}; fork it there`,
    );
  }
  if (isOfOtherAttempt(found.recorded.begin, found.row)) {
    throw new UsageError(
      `Cannot fork ${rolloutId}: ${describeOtherAttempt(found.recorded.begin, found.row)}; fork another one`,
    );
  }
  // A fork has its own groups and start.
  const {
    epochs: _epochs,
    groups: _groups,
    "branch-at": _branchAt,
    "retry-failed": _retryFailed,
    ...stored
  } = storedSettings(recorded.manifest);
  requireKnownSetup(stored, {
    doing: `fork ${rolloutId}`,
    remedy: "give that program's source the task with a `fork`",
  });
  const dir =
    flags.out ?? path.join("runs", `fork-${new Date().toISOString().replaceAll(/[:.]/g, "-")}`);
  const { split, taskIndex } = found.recorded.begin;
  const config = readRunConfig({
    ...defaultUser,
    ...stored,
    ...(await givenSettings(forkSettings, flags)),
    split,
    tasks: String(taskIndex),
    samples: size,
    out: dir,
    record: "all",
  });
  hideSecrets(createRunRedactor(config, process.env));
  const signal = stopOnInterrupt();
  await using run = await createRun(config, { signal, command: ownCommand() });
  const { environment, manifest, plan, setup } = run;
  if (environment.repeatable !== true || setup.user.repeatable !== true) {
    throw new UsageError(
      `Cannot fork ${rolloutId}: the environment ${environment.name} and the user ` +
        `${setup.user.strategy} must be repeatable, so that their part of the conversation can be ` +
        "brought back (see `repeatable`)",
    );
  }
  if (turnIndex > 0 && found.row?.reward === undefined) {
    writeError(
      `note: nothing scored ${rolloutId}: its row is not trained, and so neither is what the branches share\n`,
    );
  }
  const { task, seed } = recordedAssignment(environment, found.recorded);
  const forkedFrom = { rolloutId, turnIndex };
  const branchSeed = await chooseSeed(dir, flags.seed);
  const groupId = forkGroupId(forkedFrom, branchSeed);
  const forked = {
    ...manifest,
    // The date in the prompt of the shared turns must not change.
    promptTime: recorded.manifest.promptTime ?? toPromptTime(new Date(recorded.startedAtMs)),
    configuration: { ...manifest.configuration, forkedFrom: { ...forkedFrom, seed: branchSeed } },
    found: { ...manifest.found, plan: { ...(manifest.found["plan"] as PlanRecord), groupId } },
  };
  const note = (text: string): void => writeError(`note: ${text}\n`);
  await using columns = openColumnFolder(place);
  await using folder = await run.openFolder(note, { manifest: forked });
  for (const text of folder.notes) note(text);
  const result = await run.play(folder, {
    plan: planRun(environment, { ...plan.scope, seed: branchSeed }),
    source: {
      length: 1,
      repeatable: true,
      at: () => ({ task, groupId, fork: { place: forkedFrom, inputs, seed, columns } }),
    },
    signal,
    onEpisode: ({ rolloutId: id, outcome, stopReason, reward }) => {
      void writeOut(`${id}: ${outcome} (${stopReason}), reward ${reward ?? "none"}\n`);
    },
  });
  await writeOut(`${printRunSummary(result, folder)}${nextStep(result.end, folder)}`);
  setExitStatus(result);
}

/** The upper bound of random seeds. */
const maxSeed = 2 ** 31;

/**
 * Chooses the seed of the branches. Two forks of an episode have different seeds; a fork that continues in its folder
 * keeps its seed.
 */
async function chooseSeed(dir: string, given: string | undefined): Promise<number> {
  if (given !== undefined) return readCount("seed", given, 0);
  const isThere = await access(path.join(dir, "run.json")).then(
    () => true,
    () => false,
  );
  if (!isThere) return randomInt(maxSeed);
  const { manifest } = await openStoredRun(dir);
  const stored = manifest.configuration["forkedFrom"] as { readonly seed?: number } | undefined;
  return stored?.seed ?? randomInt(maxSeed);
}

function readCount(name: string, text: string, least: number): number {
  const value = Number(text);
  if (Number.isSafeInteger(value) && value >= least) return value;
  throw new UsageError(`Cannot use --${name} ${text}: expected a whole number, ${least} or more`);
}

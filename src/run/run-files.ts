import type { RecordedGrouping } from "./folder/episode-events.ts";
import { startedType } from "./folder/episode-events.ts";
import type { RunFolder } from "./folder/run-folder.ts";
import { warningOf } from "../episode/gateway-counters.ts";
import { messagesMember } from "./require-rows.ts";
import type { RunResult } from "./live-run.ts";
import { newSamplingFacts, ownSamplingFacts } from "./policy/found-sampling.ts";
import type { RunTally } from "./run-progress.ts";
import type { GroupLedger } from "./schedule/group-ledger.ts";
import { openPlan, type PlannedRun } from "./schedule/planned-run.ts";
import type { SlimeAttempt, SlimeSummary } from "./slime/slime-file.ts";
import type { StartRunOptions } from "./start-run-options.ts";
import { groupingCounts } from "./schedule/attempt-counts.ts";

interface RunFilesOptions extends Pick<StartRunOptions, "grouping" | "player" | "setup"> {
  readonly folder: RunFolder;
  readonly ledger: GroupLedger;
  readonly tally: RunTally;
}

/**
 * Writes the files of a run's folder that concern the complete run, at its start and at its end.
 */
export class RunFiles {
  readonly #options: RunFilesOptions;
  /** Writes `summary.json` again; `undefined` before the run has ended. */
  #rewriteSummary: (() => Promise<void>) | undefined;

  constructor(options: RunFilesOptions) {
    this.#options = options;
  }

  /** Prepares the folder for the start: removes the results of earlier starts, and completes `run.json`. */
  async start(closing: AbortSignal): Promise<void> {
    const { folder, ledger } = this.#options;
    if (!ledger.isAllFinished) await folder.results.remove();
    await this.#completeManifest(closing);
  }

  /** Adds members to `run.json` that exports and `verify` need, if the caller's manifest leaves them out. */
  async #completeManifest(closing: AbortSignal): Promise<void> {
    const { folder, player, setup } = this.#options;
    const { columns, renderer } = setup;
    const known = {
      plan: openPlan,
      ...(setup.engine.complete && messagesMember),
      ...(renderer && { vocabularySize: renderer.codec.vocabularySize }),
      ...(columns !== undefined && { columns }),
    };
    // Tokens of an earlier start were sampled with the settings that are there.
    if (await folder.holdsSampled()) {
      await folder.completeFound(known);
      return;
    }
    const own = ownSamplingFacts(folder.requestedFound);
    const found = { ...folder.manifest.found, ...own };
    // Another player may sample with other settings.
    const observed = player === undefined ? await newSamplingFacts(found, setup, closing) : {};
    await folder.completeFound(known, { ...own, ...observed });
  }

  /** Writes the event of this start. The event contains the manifest, so that a lost `run.json` can be restored. */
  async writeStartEvent(): Promise<void> {
    const { folder, grouping, setup, tally } = this.#options;
    const { found: _found, ...manifest } = folder.manifest;
    const { planned, resumed } = tally.progress();
    const { branchAt = [] } = grouping;
    const { size, started } = groupingCounts(grouping);
    const recorded = { size, begun: started, branchAt } satisfies RecordedGrouping;
    await folder.writeEvent({
      type: startedType,
      atMs: setup.now(),
      planned,
      resumed,
      ...recorded,
      manifest,
    });
  }

  /** Sorts the rows of a run that has ended, and writes its slime file, its last event and its summary. */
  async finish(end: RunResult["end"], planned: PlannedRun): Promise<SlimeSummary | undefined> {
    const { folder, grouping, ledger, setup, tally } = this.#options;
    const ids = ledger.rolloutIds;
    if (end === "finished") await folder.sortSamples(Array.from(ids, (id = "") => id));
    const slime = await this.#writeSlime();
    await folder.recordings.prune((rolloutId) => ledger.howEnded(rolloutId));
    const { end: recordedEnd, ...plannedCount } = planned.endOf(end, { grouping, ledger });
    await folder.writeEvent({ type: "run-ended", atMs: setup.now(), end: recordedEnd });
    const { elapsedMs, sampledTokensPerSecond } = tally.progress();
    const atEnd = { elapsedMs, sampledTokensPerSecond };
    let written = Promise.resolve();
    this.#rewriteSummary = async () => {
      // One write after the other, also after a failed one: the last counts win.
      written = written
        .catch(() => {})
        .then(async () => {
          const progress = { ...tally.progress(), ...plannedCount, ...atEnd };
          const warning = progress.gateway && warningOf(progress.gateway);
          await folder.results.writeSummary({
            end: recordedEnd,
            ...progress,
            ...(warning !== undefined && { warning }),
            ...(slime && { slime }),
          });
        });
      await written;
    };
    await this.#rewriteSummary();
    return slime;
  }

  /**
   * Writes the summary again if the run has ended, because a group that waited for delivery was left out after that.
   */
  async updateSummary(): Promise<void> {
    await this.#rewriteSummary?.();
  }

  /** Writes the slime file, if the folder has one. Attempts that were not started cost no memory. */
  async #writeSlime(): Promise<SlimeSummary | undefined> {
    const { folder, grouping, ledger } = this.#options;
    if (folder.slimeFile === undefined) return undefined;
    const { size, started } = groupingCounts(grouping);
    const { rolloutIds, unstartedCount } = ledger;
    // An attempt that was not started has neither an id nor rows.
    const attempts: readonly SlimeAttempt[] = Array.from(rolloutIds, (rolloutId = "", index) => ({
      rolloutId,
      index,
      groupIndex: Math.floor(index / started),
    }));
    return await folder.writeSlime(attempts, { size, unstartedCount });
  }
}

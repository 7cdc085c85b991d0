import { takeTurn } from "../../async/take-turn.ts";
import type { RunFolder } from "../folder/run-folder.ts";
import { packedOf } from "../packed/packed-episode.ts";
import type { PolicyControl } from "../policy/policy-control.ts";
import type { PolicyVersions } from "../policy/staleness.ts";
import type { RecordingJournal } from "../recording/recording-journal.ts";
import type { RunTally } from "../run-progress.ts";
import type { RunStop } from "../run-stop.ts";
import type { StartRunOptions } from "../start-run-options.ts";
import { admitTo } from "../schedule/admit-to.ts";
import type { Branches } from "./branches.ts";
import type { EarlierGroups } from "../schedule/earlier-groups.ts";
import { FailureStreak } from "./failure-streak.ts";
import type { GroupDelivery } from "../schedule/group-delivery.ts";
import type { GroupLedger } from "../schedule/group-ledger.ts";
import type { JobScheduler } from "../schedule/job-scheduler.ts";
import type { Listeners } from "../schedule/listeners.ts";
import type { AttemptJob } from "../schedule/open-group.ts";
import { episodeEvent, playAttempts } from "./play-attempts.ts";
import type { PlayedAttempt } from "./play-once.ts";
import type { PlannedRun } from "../schedule/planned-run.ts";
import { sharedPrefixOf } from "./shared-prefix.ts";

interface AttemptWorkersOptions {
  readonly run: StartRunOptions;
  /** The setup, with the policy gate in front of its engine. */
  readonly setup: StartRunOptions["setup"];
  readonly branches: Branches;
  readonly delivery: GroupDelivery;
  readonly earlier: EarlierGroups;
  readonly ledger: GroupLedger;
  readonly listeners: Listeners;
  readonly planned: PlannedRun;
  readonly policy: PolicyControl;
  readonly recording: RecordingJournal | undefined;
  readonly scheduler: JobScheduler;
  readonly stop: RunStop;
  readonly tally: RunTally;
  readonly versions: PolicyVersions;
}

/** Plays the attempts that the scheduler gives out, several at the same time, and writes and reports their episodes. */
export class AttemptWorkers {
  readonly #options: AttemptWorkersOptions;
  readonly #failures: FailureStreak;

  constructor(options: AttemptWorkersOptions) {
    this.#options = options;
    this.#failures = new FailureStreak(options.run.maxFailuresInRow ?? 20);
  }

  /** Plays attempts with `count` workers until none is left or the run stops. */
  async play(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, async () => await this.#work()));
  }

  async #work(): Promise<void> {
    const { scheduler, stop } = this.#options;
    while (!scheduler.isClosed) {
      try {
        await takeTurn();
        const job = await scheduler.next();
        if (job === undefined) return;
        await this.#admitAndPlay(job);
      } catch (error) {
        stop.failUnlessStopped(error);
        return;
      }
    }
  }

  async #admitAndPlay(job: AttemptJob): Promise<void> {
    const { listeners, run, scheduler } = this.#options;
    const { gate } = run.admission;
    const { rolloutId } = job.assignment;
    const release =
      gate &&
      (await listeners.ask(`ask admission.gate for a place for ${rolloutId}`, () =>
        admitTo(gate, job.group.groupIndex, scheduler.closing),
      ));
    if (release === "closed") return;
    try {
      await this.#playAndWrite(job);
    } finally {
      listeners.call(`give the place of ${rolloutId} back to admission.gate`, () => release?.());
    }
  }

  async #playAndWrite(job: AttemptJob): Promise<void> {
    const { planned, recording, run, scheduler, stop, tally } = this.#options;
    const { folder } = run;
    const isOver = (): boolean => job.group.isComplete || scheduler.isClosed;
    if (isOver()) return;
    await planned.admit(job.group);
    // Other attempts may have completed the group in the meantime.
    if (isOver()) return;
    tally.episodeStarted();
    this.#reportProgress();
    let isCounted = false;
    try {
      const played = await this.#play(job, folder);
      if (played === undefined || played.episode.outcome === "aborted") return;
      await this.#noteVersions(played);
      scheduler.lookAgain();
      // A finished episode can be replayed, so its last inputs are synced before its own line.
      await recording?.land(tally.running);
      const episodeHash = await folder?.writeEpisode(played.episode);
      played.close();
      tally.episodeFinished(played.episode);
      isCounted = true;
      await this.#publish(job, played, episodeHash);
    } catch (error) {
      // First of all, because the listeners below may throw too: the first error ends the run.
      stop.failUnlessStopped(error);
      throw error;
    } finally {
      if (!isCounted) tally.episodeLeft();
      this.#reportProgress();
    }
  }

  async #play(job: AttemptJob, folder: RunFolder | undefined): Promise<PlayedAttempt | undefined> {
    const { branches, recording, run, setup, stop, tally } = this.#options;
    const { grouping, player, redactor } = run;
    return await playAttempts(await branches.place(job), {
      setup,
      keepsInputs: branches.areFrom(job),
      attempts: grouping.attempts ?? 2,
      signal: stop.signal,
      interrupt: stop.interruption,
      cancel: job.group.cancel.signal,
      tally,
      ...(folder && { folder }),
      ...(recording && { recording }),
      ...(redactor && { redactor }),
      ...(player && { player }),
      onProgress: () => this.#reportProgress(),
    });
  }

  /** Records the policy versions of an episode. Turns that were resumed do not show the engine's current version. */
  async #noteVersions({ episode, recordedCount }: PlayedAttempt): Promise<void> {
    const { delivery, policy, run, versions } = this.#options;
    // Not `turns`, which would parse a packed episode.
    const hasSampled = episode.counts.turnCount > recordedCount;
    if (hasSampled) versions.see(episode, recordedCount, delivery);
    else {
      const isBounded = run.redeliver === true && run.staleness !== undefined;
      await policy.recall([episode], isBounded || versions.lacksFirst);
    }
  }

  /** Adds a written episode to its group, reports the episode, and delivers the group if it is complete. */
  async #publish(
    job: AttemptJob,
    { episode, inputs }: PlayedAttempt,
    episodeHash: string | undefined,
  ): Promise<void> {
    const { delivery, earlier, ledger, listeners, run, stop } = this.#options;
    const { folder, onEpisode, setup } = run;
    if (inputs !== undefined) job.group.sharedPrefix = sharedPrefixOf(episode, inputs);
    // Called before any wait, so that groups complete in the order of the lines in the file. A later start uses that
    // order, too.
    const complete = ledger.add(job.group, episode);
    if (complete !== undefined) delivery.endedCount += 1;
    const event = episodeEvent("episode-finished", episode, setup.now());
    await folder?.writeEvent({ ...event, episodeHash });
    if (this.#failures.add(job.group.groupIndex, episode)) {
      const reason = new DOMException("too many episodes failed in a row", "AbortError");
      stop.stop(reason, "too-many-failures");
    }
    listeners.call(`call onEpisode for ${episode.rolloutId}`, () =>
      delivery.whileReporting(() => onEpisode?.(episode)),
    );
    if (run.keepsEpisodes === false) packedOf(episode)?.release();
    if (complete === undefined) return;
    const episodes = await earlier.withEarlier(job.group, complete.episodes);
    await delivery.conclude({ ...complete, episodes });
  }

  #reportProgress(): void {
    const { listeners, run, tally } = this.#options;
    listeners.call("call onProgress", () => run.onProgress?.(tally.progress()));
  }
}

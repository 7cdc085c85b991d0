import type { ColumnStore } from "../../columns/column-store.ts";
import type { Episode } from "../../episode/episode.ts";
import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import type { RolloutError } from "../../errors.ts";
import { withResolvers } from "../../async/with-resolvers.ts";
import type { AttemptJob } from "../job/attempt-job.ts";

/** A job that was handed out, with a promise for its episode. */
export class HandedJob {
  readonly id: string;
  readonly job: AttemptJob;
  readonly onTrouble: EpisodeSetup["onTrouble"];
  /** Writes side columns into the run's folder. Absent if the run has no columns. */
  readonly columnStore: ColumnStore | undefined;
  /** Returns the episode of a job that no worker started. */
  readonly unplayed: () => Episode;
  /** Returns the episode of a job whose workers all failed. */
  readonly failed: (failure: RolloutError) => Episode;
  readonly group: string;
  /**
   * The number of unfinished attempts of the group when the job was handed out, including this one.
   */
  readonly groupLeft: number;
  readonly #result = withResolvers<Episode>();
  readonly promise: Promise<Episode> = this.#result.promise;
  /**
   * The time at which the job was last added to the queue, by the store's `clock`. `undefined`
   * until the queue has it.
   */
  addedAtMs: number | undefined;
  /** True while the hand-out reads an answer to the job. */
  isReading = false;
  isInterrupted = false;
  /** The number of answers that could not be used. */
  refusedCount = 0;

  constructor(
    about: Pick<
      HandedJob,
      "id" | "job" | "onTrouble" | "columnStore" | "unplayed" | "failed" | "group" | "groupLeft"
    >,
  ) {
    this.id = about.id;
    this.job = about.job;
    this.onTrouble = about.onTrouble;
    this.columnStore = about.columnStore;
    this.unplayed = about.unplayed;
    this.failed = about.failed;
    this.group = about.group;
    this.groupLeft = about.groupLeft;
    // The caller awaits this promise. The handler only prevents an unhandled rejection.
    this.promise.catch(() => {});
  }

  resolve(episode: Episode): void {
    this.#result.resolve(episode);
  }

  reject(error: unknown): void {
    this.#result.reject(error);
  }
}

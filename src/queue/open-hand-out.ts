import { rm } from "node:fs/promises";
import type { ColumnSpecs } from "../columns/column-specs.ts";
import type { EpisodeLimits } from "../episode/limits.ts";
import type { Redactor } from "../secrets/redactor.ts";
import type { RunManifest } from "../run/folder/run-folder.ts";
import type { Variables } from "../composition/create-engine.ts";
import type { HandOutNews } from "./hand-out/hand-out-news.ts";
import { HandOut, type HandOutOptions } from "./hand-out/hand-out.ts";
import { describeNoPlace, noColumnsPlace } from "./place/describe-no-place.ts";
import { openSharedPlace } from "./place/open-shared-place.ts";
import { queueIdOf } from "./queue-id.ts";
import type { SharedPlace } from "./place/shared-place.ts";
import type { QueueConfig } from "./queue-settings.ts";
import { termsOf } from "./run/run-terms.ts";
import { QueueStore } from "./store/queue-store.ts";

/** The run to hand out. */
export interface HandedRun extends Pick<
  HandOutOptions,
  "environment" | "sampling" | "isRecorded" | "isMarked" | "policy" | "columnsDir"
> {
  /** The folder of the run. A file in it has the run's id in the queue. */
  readonly dir: string;
  /**
   * The run's own id. The id in the folder's queue file is valid for this run only. Absent for a
   * service.
   */
  readonly runId?: string | undefined;
  readonly manifest: RunManifest;
  readonly redactor: Redactor;
  readonly onNews?: (news: HandOutNews) => void;
}

/** The run to hand out, and the queue to use. */
export interface OpenHandOutOptions extends HandedRun {
  readonly config: QueueConfig;
  /** The side columns of the run's rows, which workers write into the shared folder. Default: none. */
  readonly columns?: ColumnSpecs | undefined;
  /** The limits that bound the size of a result. */
  readonly limits: EpisodeLimits;
  readonly env?: Variables;
  /** Called when the store becomes unreachable, and when it can be reached again. */
  readonly onContact?: (contact: { readonly isThere: boolean; readonly why?: string }) => void;
}

/** An open hand-out, with its warnings. Disposing it also closes the store. */
export interface OpenedHandOut extends AsyncDisposable {
  readonly handOut: HandOut;
  /** Records that the run is finished, so that disposing removes its side columns from the shared folder. */
  readonly finished: () => void;
  /** Warnings to show before the run. */
  readonly warnings: readonly string[];
}

/**
 * Opens the queue of a run. Only this function loads the queue's packages.
 * @throws UsageError if a package is missing, or if the store or the shared place cannot be used.
 */
export async function openHandOut(options: OpenHandOutOptions): Promise<OpenedHandOut> {
  const { config, redactor, env = process.env, onContact, dir, runId, columns } = options;
  const place = await openSharedPlace(config.shared, env);
  if (columns !== undefined && place?.columnsOf === undefined) throw noColumnsPlace(config.shared);
  const columnsDir = columns && place?.columnsOf?.(await queueIdOf(dir, runId));
  const store = await QueueStore.connect(config, {
    env,
    redactor,
    ...(onContact && { onContact }),
  });
  const handOut = await handOutOver(store, place, {
    ...options,
    ...(columnsDir !== undefined && { columnsDir }),
  });
  let isFinished = false;
  const tooLarge = describeNoPlace(config.shared, options.limits);
  return {
    handOut,
    finished: () => void (isFinished = true),
    warnings: tooLarge === undefined ? [] : [tooLarge],
    async [Symbol.asyncDispose]() {
      await using _store = store;
      await handOut[Symbol.asyncDispose]();
      if (!isFinished || columnsDir === undefined) return;
      await rm(columnsDir, { recursive: true, force: true });
    },
  };
}

/**
 * Hands out a run over a store. Closes the store if this fails.
 * @throws UsageError if the store or the shared place cannot be used.
 */
export async function handOutOver(
  store: QueueStore,
  place: SharedPlace | undefined,
  { dir, runId, manifest, redactor, ...run }: HandedRun,
): Promise<HandOut> {
  const { environment, sampling, isRecorded, isMarked, policy, columnsDir, onNews } = run;
  try {
    return await HandOut.open({
      store,
      environment,
      sampling,
      isRecorded,
      run: await queueIdOf(dir, runId),
      terms: termsOf(redactor.clean(manifest)),
      ...(place && { place }),
      ...(isMarked !== undefined && { isMarked }),
      ...(policy && { policy }),
      ...(columnsDir !== undefined && { columnsDir }),
      ...(onNews && { onNews }),
    });
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

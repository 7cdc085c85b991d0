import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import type { EpisodeLimits } from "../episode/limits.ts";
import { UsageError, describeError } from "../errors.ts";
import { given } from "../internal/given.ts";
import type { Redactor } from "../internal/redactor.ts";
import type { RunManifest } from "../run/run-folder.ts";
import { writeWholeJson } from "../run/write-whole.ts";
import { diskFiles } from "../run/files.ts";
import type { Variables } from "../setup/create-engine.ts";
import type { HandOutNews } from "./hand-out/hand-out-news.ts";
import { HandOut, type HandOutOptions } from "./hand-out/hand-out.ts";
import { describeNoPlace } from "./place/describe-no-place.ts";
import { openSharedPlace } from "./place/open-shared-place.ts";
import type { QueueConfig } from "./queue-settings.ts";
import { termsOf } from "./run/run-terms.ts";
import { QueueStore } from "./store/queue-store.ts";

/** What is handed out, and to where. */
export interface OpenHandOutOptions extends Pick<
  HandOutOptions,
  "environment" | "sampling" | "isRecorded" | "isMarked"
> {
  readonly config: QueueConfig;
  /** The folder that the run is written to: it keeps the run's id in the queue. */
  readonly dir: string;
  /** The run's own id, for which alone the folder's id in the queue is good. Default: whatever run is in the folder. */
  readonly runId?: string | undefined;
  readonly manifest: RunManifest;
  readonly redactor: Redactor;
  /** How large results may become. */
  readonly limits: EpisodeLimits;
  readonly env?: Variables;
  readonly onNews?: (news: HandOutNews) => void;
  /** Told when the store cannot be reached, and when it can again. */
  readonly onContact?: (contact: { readonly isThere: boolean; readonly why?: string }) => void;
}

/** A hand-out with what was opened for it. */
export interface OpenedHandOut extends AsyncDisposable {
  readonly handOut: HandOut;
  /** What a person should know before the run. */
  readonly warnings: readonly string[];
}

/**
 * Opens the queue of a run. The packages that it takes are loaded here, and nowhere else.
 *
 * @throws UsageError where a package is missing, or store or shared place cannot be used.
 */
export async function openHandOut(options: OpenHandOutOptions): Promise<OpenedHandOut> {
  const { config, dir, runId, manifest, redactor, env = process.env } = options;
  const { environment, sampling, isRecorded, isMarked, onNews, onContact } = options;
  const place = await openSharedPlace(config.shared, env);
  const store = await QueueStore.connect(config, {
    ...{ env, redactor },
    ...(onContact && { onContact }),
  });
  try {
    const handOut = await HandOut.open({
      ...{ store, environment, sampling, isRecorded },
      run: await queueIdOf(dir, runId),
      terms: termsOf(redactor.clean(manifest)),
      ...(place && { place }),
      ...(isMarked !== undefined && { isMarked }),
      ...(onNews && { onNews }),
    });
    const tooLarge = describeNoPlace(config.shared, options.limits);
    return {
      handOut,
      warnings: tooLarge === undefined ? [] : [tooLarge],
      async [Symbol.asyncDispose]() {
        await using _store = store;
        await handOut[Symbol.asyncDispose]();
      },
    };
  } catch (error) {
    await store[Symbol.asyncDispose]();
    throw error;
  }
}

const queueFile = "queue.json";

const queueFileSchema = z.object({
  queue: z.literal(1),
  run: z.string().regex(/^[\w-]{1,100}$/),
  /** The run's own id. Absent in the files of earlier versions. */
  of: z.string().optional(),
});

/**
 * The id that the folder's run has in the queue: that of its first start, so that it finds its own again. A folder
 * in which another run was begun, such as by other settings before anything was played, has another: what workers
 * still play of the first is not its own.
 */
async function queueIdOf(dir: string, runId: string | undefined): Promise<string> {
  const file = path.join(dir, queueFile);
  const known = await readQueueFile(file);
  const isSame = known?.of === undefined || runId === undefined || known.of === runId;
  if (known !== undefined && isSame) return known.run;
  const run = randomUUID().slice(0, 13);
  await writeWholeJson(file, { queue: 1, run, ...given({ of: runId }) }, { files: diskFiles });
  return run;
}

/** `undefined` where there is none. */
async function readQueueFile(file: string): Promise<z.infer<typeof queueFileSchema> | undefined> {
  try {
    const read = queueFileSchema.safeParse(JSON.parse(await readFile(file, "utf8")));
    if (read.success) return read.data;
    throw new UsageError(
      `Cannot read ${file}: expected {"queue": 1, "run": …}; remove it to begin a new queue`,
    );
  } catch (error) {
    if (error instanceof SyntaxError) {
      throw new UsageError(
        `Cannot read ${file}: ${describeError(error)}; remove it to begin a new queue`,
      );
    }
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
    return undefined;
  }
}

import { randomUUID } from "node:crypto";
import { readFile } from "node:fs/promises";
import path from "node:path";
import { z } from "zod";
import { UsageError, describeError } from "../errors.ts";
import { diskFiles } from "../run/disk/files.ts";
import { writeJsonAtomically } from "../run/disk/write-atomically.ts";

const queueFile = "queue.json";

const queueFileSchema = z.object({
  queue: z.literal(1),
  run: z.string().regex(/^[\w-]{1,100}$/),
  /** The run's `runId`. Absent for a service. */
  of: z.string().optional(),
});

/**
 * Returns the id of the folder's run in the queue. The id is that of the run's first start, so that later starts find
 * their jobs. If another run is started in the folder, for example with other settings, the other run gets its own id.
 * @throws UsageError if the id's file is damaged.
 */
export async function queueIdOf(dir: string, runId: string | undefined): Promise<string> {
  const file = path.join(dir, queueFile);
  const known = await readQueueFile(file);
  if (known !== undefined && known.of === runId) return known.run;
  const run = randomUUID().slice(0, 13);
  await writeJsonAtomically(
    file,
    { queue: 1, run, ...(runId !== undefined && { of: runId }) },
    { files: diskFiles },
  );
  return run;
}

/** Reads the queue file of a run's folder. Returns `undefined` if it does not exist. */
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

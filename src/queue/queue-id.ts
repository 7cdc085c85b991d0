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
  /** The run's own `runId`. Absent for a service, whose folder is no run's. */
  of: z.string().optional(),
});

/**
 * The id that the folder's run has in the queue: that of its first start, so that it finds its own again. A folder
 * in which another run was begun, such as by other settings before anything was played, has another: what workers
 * still play of the first is not its own.
 *
 * @throws UsageError where the file that keeps it is damaged.
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

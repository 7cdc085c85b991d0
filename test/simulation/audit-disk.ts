import { mkdir, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { verifyRun } from "../../src/audit/verify-run.ts";
import type { MemoryDisk } from "./memory-disk.ts";

/** What `turnwright verify` finds in a folder of the disk, which is copied for it. */
export async function auditDisk(
  disk: MemoryDisk,
  dir: string,
  scratch: string,
): Promise<readonly string[]> {
  const copy = path.join(scratch, path.basename(dir));
  await mkdir(copy, { recursive: true });
  try {
    for (const name of disk.namesIn(dir)) {
      await writeFile(path.join(copy, name), disk.text(path.join(dir, name)));
    }
    const { isFinished, missing, violations } = await verifyRun(copy);
    return [
      ...(isFinished ? [] : [`verify says that ${dir} is not finished`]),
      ...(missing ?? []).map((label) => `verify misses ${label}`),
      ...violations.map((violation) => `verify: ${JSON.stringify(violation)}`),
    ];
  } finally {
    await rm(copy, { recursive: true });
  }
}

import { auditFolder } from "../../src/verify/verify-run.ts";
import type { MemoryDisk } from "./memory-disk.ts";

/** The findings of `turnwright verify` in a folder of the disk. */
export async function auditDisk(disk: MemoryDisk, dir: string): Promise<readonly string[]> {
  const { isFinished, missing, violations } = await auditFolder(
    disk.files(() => undefined),
    dir,
  );
  return [
    ...(isFinished ? [] : [`verify says that ${dir} is not finished`]),
    ...(missing ?? []).map((label) => `verify misses ${label}`),
    ...violations.map((violation) => `verify: ${JSON.stringify(violation)}`),
  ];
}

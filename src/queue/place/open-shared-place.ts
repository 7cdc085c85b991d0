import { openSharedFolder } from "./shared-folder.ts";
import type { SharedPlace } from "./shared-place.ts";

/**
 * Opens a shared place: a folder, or `s3://bucket/prefix`. Loads the code for the latter only if it
 * is used.
 * @throws UsageError if the place cannot be used.
 */
export async function openSharedPlace(
  where: string | undefined,
  env: Readonly<Record<string, string | undefined>>,
): Promise<SharedPlace | undefined> {
  if (where === undefined) return undefined;
  if (!where.startsWith("s3://")) return await openSharedFolder(where);
  const { openSharedBucket } = await import("./shared-bucket.ts");
  return await openSharedBucket(where, env);
}

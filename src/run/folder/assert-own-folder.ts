import path from "node:path";
import { UsageError } from "../../errors.ts";
import { type Files } from "../disk/files.ts";
import { manifestFile, type RunPlace } from "./run-manifest.ts";
import { episodesFile } from "./scan-claims.ts";
import { storageError } from "../disk/storage-error.ts";

/** Names that a folder may contain before its first run: hidden files, logs, and files that this package writes. */
const harmless =
  /^(?:\.|run\.|samples\.|episodes\.|events\.|recording\.|summary\.|report\.|results\.|queue\.|gateway\.jsonl)|\.(?:log|txt|out|err)$/;

/**
 * Names that are allowed next to the files of a played run. In a folder without a run, another program may have written
 * such files.
 */
const harmlessBesideRun = /^(?:evaluation|errors)\./;

/**
 * Checks that a folder without a run holds no files of other programs.
 *
 * @throws UsageError that names some of these files.
 */
export async function assertOwnFolder({ dir, name }: RunPlace, files: Files): Promise<void> {
  let names: readonly string[];
  try {
    names = await files.list(dir);
  } catch (error) {
    throw storageError("read the run folder", name, error);
  }
  if (names.includes(manifestFile)) return;
  const isBesideRun = names.includes(episodesFile);
  const foreign = names
    .filter((file) => !harmless.test(file) && !(isBesideRun && harmlessBesideRun.test(file)))
    .toSorted();
  if (foreign.length === 0) return;
  const shown = foreign.slice(0, 3).join(", ");
  throw new UsageError(
    `Cannot start a run in ${name}: it holds ${shown}${foreign.length > 3 ? " and more" : ""} and is not a run's ` +
      `folder, expected a new or an empty one, such as ${path.join(name, "first")}`,
  );
}

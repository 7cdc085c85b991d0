import path from "node:path";
import { UsageError } from "../../errors.ts";
import { type Files } from "../disk/files.ts";
import type { RunPlace } from "./run-manifest.ts";
import { storageError } from "../disk/storage-error.ts";

/** What a run's folder holds from its first moment on. */
const manifestFile = "run.json";

/** What may lie there before a run begins: what this package writes, logs, and hidden files. */
const harmless =
  /^(?:\.|run\.|samples\.|episodes\.|events\.|recording\.|summary\.|report\.|results\.|queue\.|gateway\.jsonl)|\.(?:log|txt|out|err)$/;

/** What a run has from its first start on, also where `run.json` was lost. */
const episodesFile = "episodes.jsonl";

/** What is written beside a run that was played, and may be anything elsewhere. */
const harmlessBesideRun = /^(?:evaluation|errors)\./;

/**
 * Refuses a folder that is somebody else's: one that holds other things and no run.
 *
 * @throws UsageError that names some of what is there.
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
    `Cannot begin a run in ${name}: it holds ${shown}${foreign.length > 3 ? " and more" : ""} and is no run's ` +
      `folder, expected a new or an empty one, such as ${path.join(name, "first")}`,
  );
}

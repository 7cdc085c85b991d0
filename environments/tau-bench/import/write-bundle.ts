import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../../src/errors.ts";
import { manifestFile } from "./bundle-manifest.ts";

/** The files of a bundle by their paths within it. */
type BundleFiles = ReadonlyMap<string, Buffer | string>;

/**
 * Checks that a folder may be replaced by a bundle: it is absent, empty, or already a bundle.
 *
 * @throws UsageError for any other folder.
 */
export async function assertReplaceable(to: string): Promise<void> {
  const entries = await readdir(to).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw new UsageError(`Cannot write a bundle to ${to}`, { cause: error });
  });
  if (entries.length === 0 || entries.includes(manifestFile)) return;
  throw new UsageError(
    `Cannot write a bundle to ${to}: it contains other files (no ${manifestFile}), ` +
      "expected an empty or absent folder, or a bundle to replace",
  );
}

/**
 * Writes a bundle beside the folder and then moves it into place, so that an interruption leaves no partial bundle.
 *
 * @throws UsageError if the folder or its parent cannot be written.
 */
export async function writeBundle(files: BundleFiles, to: string): Promise<void> {
  try {
    await writeAndMove(files, to);
  } catch (error) {
    throw new UsageError(`Cannot write a bundle to ${to}`, { cause: error });
  }
}

async function writeAndMove(files: BundleFiles, to: string): Promise<void> {
  const parent = path.dirname(path.resolve(to));
  // A fixed name, so that the rest of an interrupted import is found and removed.
  const scratch = path.join(parent, `.${path.basename(to)}.importing`);
  await rm(scratch, { recursive: true, force: true });
  try {
    const next = path.join(scratch, "next");
    for (const [name, content] of files) {
      const file = path.join(next, name);
      await mkdir(path.dirname(file), { recursive: true });
      await writeFile(file, content);
    }
    const replaced = path.join(scratch, "replaced");
    await rename(to, replaced).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOENT") throw error;
    });
    await rename(next, to);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}

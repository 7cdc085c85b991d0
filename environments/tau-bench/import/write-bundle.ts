import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../../src/errors.ts";
import { manifestFile } from "./bundle-manifest.ts";

/** The files of a bundle by their paths within it. */
type BundleFiles = ReadonlyMap<string, Buffer | string>;

/**
 * Checks that a folder may become a bundle: it is absent, empty, or a bundle already.
 *
 * @throws UsageError where it is anything else.
 */
export async function assertReplaceable(to: string): Promise<void> {
  const entries = await readdir(to).catch((error: NodeJS.ErrnoException): string[] => {
    if (error.code === "ENOENT") return [];
    throw new UsageError(`Cannot write a bundle to ${to}`, { cause: error });
  });
  if (entries.length === 0 || entries.includes(manifestFile)) return;
  throw new UsageError(
    `Cannot write a bundle to ${to}: it holds other files (no ${manifestFile}), ` +
      "expected an empty or absent folder, or a bundle to replace",
  );
}

/**
 * Writes beside the folder and then moves into its place, so that a break leaves no half bundle.
 *
 * @throws UsageError where the folder or the one that it is in cannot be written.
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
  // One name, so that what a break left behind is found and removed.
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

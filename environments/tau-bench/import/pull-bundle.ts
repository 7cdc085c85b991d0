import { createReadStream } from "node:fs";
import { mkdir, rm, rmdir, writeFile } from "node:fs/promises";
import path from "node:path";
import { createGunzip } from "node:zlib";
import { UsageError, describeError } from "../../../src/errors.ts";
import type { BundleManifest } from "./bundle-manifest.ts";
import { checkBundle, sha256Of } from "./bundle-manifest.ts";
import type { DownloadOptions } from "../../../src/files/download-file.ts";
import { downloadFile } from "../../../src/files/download-file.ts";
import { importTauBench } from "./import-bundle.ts";
import { pinnedSource } from "./pinned-source.ts";
import { readTar } from "./read-tar.ts";
import { assertReplaceable } from "./write-bundle.ts";

/** The URL of the pinned commit's archive. */
export const pinnedArchiveUrl = `https://codeload.github.com/sierra-research/tau-bench/tar.gz/${pinnedSource.commit}`;

/** Options of `pullTauBench()`. */
export interface PullOptions extends Pick<
  DownloadOptions,
  "signal" | "maxAttempts" | "pauseMs" | "onProgress"
> {
  /** The bundle's folder. */
  readonly to: string;
  /** Default: GitHub's archive of the pinned commit. The content must be the same at any URL. */
  readonly url?: string;
  /** The commit, and the SHA-256 of its files. Default `pinnedSource`. */
  readonly pinned?: PinnedCommit;
}

/** A commit, and the SHA-256 of each of its files that is used. */
export interface PinnedCommit {
  readonly commit: string;
  readonly inputs: ReadonlyMap<string, string>;
}

/** A pulled bundle. */
export interface PulledBundle {
  readonly manifest: BundleManifest;
  /** False if the bundle already existed, unchanged. */
  readonly isNew: boolean;
}

const maxArchiveBytes = 512 * 2 ** 20;
const maxUnpackedBytes = 4 * 2 ** 30;
const maxFileBytes = 64 * 2 ** 20;

/**
 * Downloads the pinned commit of τ-bench and makes a bundle of it. Every used file must have its pinned SHA-256, so
 * the server and the packing do not matter. An interrupted download leaves either a part that the next call
 * resumes, in `.<name>.pulling` beside the bundle, or no files.
 *
 * @throws UsageError if the download fails, or is not the pinned commit.
 * @throws the signal's reason if it aborts.
 */
export async function pullTauBench({
  to,
  url = pinnedArchiveUrl,
  pinned = pinnedSource,
  ...download
}: PullOptions): Promise<PulledBundle> {
  await assertReplaceable(to);
  const there = await checkBundle(to).catch(() => undefined);
  if (there !== undefined && there.commit === pinned.commit && there.changed === undefined) {
    return { manifest: there, isNew: false };
  }
  const scratch = path.join(path.dirname(path.resolve(to)), `.${path.basename(to)}.pulling`);
  await mkdir(scratch, { recursive: true });
  const archive = path.join(scratch, "archive.tar.gz");
  try {
    await downloadFile({ ...download, url, file: archive, maxBytes: maxArchiveBytes });
  } catch (error) {
    // Removes the folder if it has no partial download.
    await rmdir(scratch).catch(() => undefined);
    throw error;
  }
  try {
    const checkout = path.join(scratch, "checkout");
    await unpackPinned({ archive, url, pinned }, checkout);
    return { manifest: await importTauBench({ from: checkout, to }), isNew: true };
  } finally {
    // An error with a complete archive would occur again.
    await rm(scratch, { recursive: true, force: true });
  }
}

/** Unpacks the pinned files, each under its pinned name, after checking its hash. */
async function unpackPinned(
  {
    archive,
    url,
    pinned,
  }: { readonly archive: string; readonly url: string; readonly pinned: PinnedCommit },
  checkout: string,
): Promise<void> {
  const missing = new Map(pinned.inputs);
  const files = readTar(gunzipped(archive, url), {
    place: url,
    // Archives contain everything in one folder, which is named for the commit.
    wants: (name) => missing.has(withoutFirstFolder(name)),
    maxFileBytes,
    maxTotalBytes: maxUnpackedBytes,
  });
  for await (const { path: entry, content } of files) {
    const name = withoutFirstFolder(entry);
    const found = sha256Of(content);
    const wanted = missing.get(name);
    if (found !== wanted) {
      throw new UsageError(
        `Cannot use ${name} from ${url}: its SHA-256 is ${found}, expected ${wanted} as in commit ` +
          pinned.commit,
      );
    }
    missing.delete(name);
    const file = path.join(checkout, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
  }
  const [first] = missing.keys();
  if (first === undefined) return;
  throw new UsageError(`Cannot use ${url}: it lacks ${missing.size} files, such as ${first}`);
}

async function* gunzipped(archive: string, url: string): AsyncGenerator<Buffer> {
  const file = createReadStream(archive);
  try {
    for await (const piece of file.pipe(createGunzip())) yield piece as Buffer;
  } catch (error) {
    throw new UsageError(`Cannot unpack ${url}: ${describeError(error)}`, { cause: error });
  } finally {
    file.destroy();
  }
}

function withoutFirstFolder(name: string): string {
  return name.slice(name.indexOf("/") + 1);
}

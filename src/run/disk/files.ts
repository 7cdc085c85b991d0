import { constants } from "node:fs";
import {
  type FileHandle,
  link,
  open,
  readdir,
  readlink,
  realpath,
  rename,
  stat,
  unlink,
} from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { makeFolder } from "../../files/make-folder.ts";

/** Facts about a file that can be known without reading it. */
export interface FileFacts {
  /** The size in bytes. */
  readonly size: number;
  /** An id of the file. Two paths of the same file have the same one. */
  readonly identity: string;
  /** The time of the last write, by the file system's clock: milliseconds since the epoch. */
  readonly writtenAtMs: number;
}

/** An open file. Its methods throw the system's own errors, with their codes. */
export interface OpenFile {
  /**
   * Reads bytes from a position.
   *
   * @returns the number of bytes that were read; 0 at the end of the file.
   */
  read(into: Uint8Array, position: number): Promise<number>;
  /**
   * Writes bytes to a position.
   *
   * @returns the number of bytes that were written. It may be less than the number given.
   */
  write(bytes: Uint8Array, position: number): Promise<number>;
  truncate(size: number): Promise<void>;
  /** Resolves when content and size are synced to the disk. */
  sync(): Promise<void>;
  facts(): Promise<FileFacts>;
  close(): Promise<void>;
}

/**
 * The mode in which a file is opened. `read` only reads. `update` reads and writes, and creates a missing file.
 * `append` is `update`, but every write goes to the end. `replace` empties or creates the file. `create` fails if the
 * file exists.
 */
export type OpenMode = "read" | "update" | "append" | "replace" | "create";

/** The file system operations of a run. Tests replace them to simulate failing disks. */
export interface Files {
  open(path: string, mode: OpenMode): Promise<OpenFile>;
  /** Returns the facts of a file; `undefined` if it does not exist. */
  facts(path: string): Promise<FileFacts | undefined>;
  rename(from: string, to: string): Promise<void>;
  /** Gives a file a second name. Fails with `EEXIST` if that name exists. */
  link(existing: string, name: string): Promise<void>;
  /** Removes a file. A missing file is no error. */
  remove(path: string): Promise<void>;
  /** Lists the names in a folder. */
  list(dir: string): Promise<readonly string[]>;
  /** Creates a folder and its parents, and syncs their names. An existing folder is no error. */
  makeFolder(dir: string): Promise<void>;
  /** Resolves symbolic links; returns the path itself if it does not exist. */
  realPath(path: string): Promise<string>;
  /** Resolves when the names in the folder are synced, if the system supports that. */
  syncFolder(dir: string): Promise<void>;
}

const { O_RDWR, O_CREAT, O_APPEND } = constants;

const openFlags: Readonly<Record<OpenMode, string | number>> = {
  read: "r",
  update: O_RDWR | O_CREAT,
  append: O_RDWR | O_CREAT | O_APPEND,
  replace: "w+",
  create: "wx+",
};

/** The file system of this machine. */
export const diskFiles: Files = {
  open: async (path, mode) => toOpenFile(await open(path, openFlags[mode])),
  facts: async (path) => {
    try {
      return toFacts(await stat(path, { bigint: true }));
    } catch (error) {
      if (codeOf(error) === "ENOENT") return undefined;
      throw error;
    }
  },
  rename,
  link,
  makeFolder: async (dir) => {
    for (const made of await makeFolder(dir)) if (made !== dir) await syncFolder(dirname(made));
  },
  remove: async (path) => {
    try {
      await unlink(path);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  },
  list: async (dir) => await readdir(dir),
  realPath: async (path) => {
    try {
      return await realpath(path);
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
      const target = await readlink(path).catch(() => undefined);
      return target === undefined ? path : await diskFiles.realPath(resolve(dirname(path), target));
    }
  },
  syncFolder,
};

/** Error codes of systems that cannot sync folders. */
const unsyncable = new Set(["EISDIR", "EPERM", "EACCES", "EINVAL", "ENOTSUP", "EBADF"]);

async function syncFolder(dir: string): Promise<void> {
  try {
    await using folder = await open(dir, "r");
    await folder.sync();
  } catch (error) {
    if (!unsyncable.has(codeOf(error) ?? "")) throw error;
  }
}

function toOpenFile(file: FileHandle): OpenFile {
  return {
    read: async (into, position) => (await file.read(into, 0, into.length, position)).bytesRead,
    write: async (bytes, position) =>
      (await file.write(bytes, 0, bytes.length, position)).bytesWritten,
    truncate: async (size) => await file.truncate(size),
    sync: async () => await file.datasync(),
    facts: async () => toFacts(await file.stat({ bigint: true })),
    close: async () => await file.close(),
  };
}

function toFacts({
  size,
  dev,
  ino,
  mtimeMs,
}: {
  readonly size: bigint;
  readonly dev: bigint;
  readonly ino: bigint;
  readonly mtimeMs: bigint;
}): FileFacts {
  return { size: Number(size), identity: `${dev}:${ino}`, writtenAtMs: Number(mtimeMs) };
}

/** Returns the system's code of an error, such as `ENOENT`; `undefined` for other errors. */
export function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/**
 * Writes all bytes, in several calls if needed.
 *
 * @throws an error with the code `ENOSPC` if a call writes no bytes.
 */
export async function writeAll(file: OpenFile, bytes: Uint8Array, position: number): Promise<void> {
  for (let start = 0; start < bytes.length;) {
    const written = await file.write(bytes.subarray(start), position + start);
    if (written === 0) {
      throw Object.assign(new Error("ENOSPC: the system took no more bytes"), { code: "ENOSPC" });
    }
    start += written;
  }
}

/** Reads a small file as text; returns `undefined` if it does not exist. */
export async function readText(files: Files, path: string): Promise<string | undefined> {
  return await withFile(files, path, async (file) => {
    const { size } = await file.facts();
    return (await readBytes(file, { start: 0, end: size })).toString("utf8");
  });
}

/** Opens a file for reading while `work` runs; returns `undefined` if it does not exist. */
export async function withFile<Result>(
  files: Files,
  path: string,
  work: (file: OpenFile) => Promise<Result>,
): Promise<Result | undefined> {
  let file: OpenFile;
  try {
    file = await files.open(path, "read");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return undefined;
    throw error;
  }
  try {
    return await work(file);
  } finally {
    await file.close();
  }
}

/** The size of the first block. Most files that are read completely are smaller. */
const firstBlockSize = 16 * 1024;
const blockSize = 256 * 1024;

/** Reads a file from `start` to its end. A block is valid until the next one is requested. */
export async function* readBlocks(file: OpenFile, start = 0): AsyncGenerator<Buffer> {
  let block = Buffer.allocUnsafe(firstBlockSize);
  for (let position = start; ;) {
    const length = await file.read(block, position);
    if (length === 0) return;
    yield block.subarray(0, length);
    position += length;
    if (length === block.length && length < blockSize) block = Buffer.allocUnsafe(blockSize);
  }
}

/** Reads a range of a file; returns fewer bytes if the file ends before. */
export async function readBytes(
  file: OpenFile,
  { start, end }: { readonly start: number; readonly end: number },
): Promise<Buffer> {
  const bytes = Buffer.allocUnsafe(end - start);
  let length = 0;
  for (let count = 1; length < bytes.length && count > 0; length += count) {
    count = await file.read(bytes.subarray(length), start + length);
  }
  return bytes.subarray(0, length);
}

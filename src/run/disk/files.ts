import { constants } from "node:fs";
import {
  type FileHandle,
  link,
  open,
  readdir,
  realpath,
  rename,
  stat,
  unlink,
} from "node:fs/promises";
import { dirname } from "node:path";
import { makeFolder } from "../../files/make-folder.ts";

/** What is known of a file without reading it. */
export interface FileFacts {
  /** In bytes. */
  readonly size: number;
  /** Two paths with the same one are the same file. */
  readonly identity: string;
  /** When it was written last, by the file system's clock: milliseconds since the epoch. */
  readonly writtenAtMs: number;
}

/** A file that is open. Its methods throw the system's own errors, with their codes. */
export interface OpenFile {
  /** @returns how many bytes were read; 0 at the end. */
  read(into: Uint8Array, position: number): Promise<number>;
  /** @returns how many bytes were written, which may be fewer than there are. */
  write(bytes: Uint8Array, position: number): Promise<number>;
  truncate(size: number): Promise<void>;
  /** Resolves once contents and size are on the disk. */
  sync(): Promise<void>;
  facts(): Promise<FileFacts>;
  close(): Promise<void>;
}

/**
 * How a file is opened: `read`; `update`, to read and write, created where it is absent; `append`,
 * as `update`, but whatever is written goes to the end; `replace`, emptied or created; `create`, an
 * error where it is there already.
 */
export type OpenMode = "read" | "update" | "append" | "replace" | "create";

/** The file system, as far as a run needs it. A parameter, so that tests can break it. */
export interface Files {
  open(path: string, mode: OpenMode): Promise<OpenFile>;
  /** `undefined` where there is no such file. */
  facts(path: string): Promise<FileFacts | undefined>;
  rename(from: string, to: string): Promise<void>;
  /** Gives a file a second name; fails with `EEXIST` where there is a file of that name. */
  link(existing: string, name: string): Promise<void>;
  /** Removes a file; none is fine. */
  remove(path: string): Promise<void>;
  /** The names in a folder. */
  list(dir: string): Promise<readonly string[]>;
  /** Creates a folder with those above it, of which the names are on the disk then; one that is there is fine. */
  makeFolder(dir: string): Promise<void>;
  /** Where a path leads to; the path itself where there is nothing. */
  realPath(path: string): Promise<string>;
  /** Resolves once the names in the folder are on the disk, where the system can say that. */
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

/** The machine's own file system. */
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
      if (codeOf(error) === "ENOENT") return path;
      throw error;
    }
  },
  syncFolder,
};

/** What a system says that cannot sync folders. */
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

/** The system's code of an error, such as `ENOENT`; `undefined` for errors of another kind. */
export function codeOf(error: unknown): string | undefined {
  const { code } = (error ?? {}) as { readonly code?: unknown };
  return typeof code === "string" ? code : undefined;
}

/**
 * Writes all bytes, however many calls it takes.
 *
 * @throws an error with the code `ENOSPC` where a call writes nothing.
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

/** The whole of a small file as text; `undefined` where there is no such file. */
export async function readText(files: Files, path: string): Promise<string | undefined> {
  return await withFile(files, path, async (file) => {
    const { size } = await file.facts();
    return (await readBytes(file, { start: 0, end: size })).toString("utf8");
  });
}

/** Opens a file for reading while `work` runs; `undefined` where there is no such file. */
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

/** Most files that are read whole are short: room for a long one is taken when it shows. */
const firstBlockSize = 16 * 1024;
const blockSize = 256 * 1024;

/** A file's bytes from `start` to its end. A block is valid until the next one is asked for. */
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

/** The bytes of a stretch of a file; fewer where the file ends before. */
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

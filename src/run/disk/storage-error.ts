import { UsageError, describeError } from "../../errors.ts";
import { codeOf } from "./files.ts";

/** Advice for the user, by the system's error code. */
const remedies: Readonly<Record<string, string>> = {
  ENOSPC: "make room on the disk",
  EDQUOT: "make room in the disk quota",
  EFBIG: "allow larger files there",
  EROFS: "make the file system writable, or choose another --out",
  EACCES: "make it writable, or choose another --out",
  EPERM: "make it writable, or choose another --out",
  ENOENT: "something moved or deleted the run's folder: put it back, or choose another --out",
  ESTALE: "something moved or deleted the run's folder: put it back, or choose another --out",
  ENOTDIR: "choose an --out that is a folder",
  EEXIST: "choose an --out that is a folder",
  EISDIR: "move that folder away",
  EMFILE: "allow more open files (ulimit -n)",
  ENFILE: "allow more open files",
  EIO: "check the disk",
};

/**
 * Describes an error of the disk in one line: the path, the system's reason, and what to do. The line says that
 * finished episodes are kept.
 *
 * @param doing - A verb, such as `write`.
 */
export function storageError(doing: string, path: string, error: unknown): unknown {
  const code = codeOf(error);
  if (error instanceof UsageError || code === undefined) return error;
  const remedy = remedies[code] ?? "mend that";
  return new UsageError(
    `Cannot ${doing} ${path}: ${describeError(error)}; ${remedy}, then start the same command ` +
      "again: finished episodes are kept",
    { cause: error },
  );
}

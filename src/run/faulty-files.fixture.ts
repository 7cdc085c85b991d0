import { type Files, type OpenFile, diskFiles } from "./disk/files.ts";

/** One call of the file system. */
export interface FileCall {
  readonly operation: keyof Files | keyof OpenFile;
  readonly path: string;
  /** For writes: the number of bytes to write. */
  readonly size?: number;
}

/** The fault of a call. A write may have stored some bytes before. */
export type Fault =
  | { readonly type: "fail"; readonly code: string; readonly written?: number }
  | { readonly type: "short"; readonly written: number };

/** The machine's files, with faults in the calls that `fault` selects. */
export function faultyFiles(fault: (call: FileCall) => Fault | undefined): Files {
  const check = (operation: FileCall["operation"], path: string): void => {
    const found = fault({ operation, path });
    if (found?.type === "fail") throw systemError(found.code);
  };
  const guard =
    <Result>(operation: keyof Files, call: (path: string) => Promise<Result>) =>
    async (path: string): Promise<Result> => {
      check(operation, path);
      return await call(path);
    };
  return {
    open: async (path, mode) => {
      check("open", path);
      return faultyFile(path, await diskFiles.open(path, mode), fault);
    },
    rename: async (from, to) => {
      check("rename", to);
      await diskFiles.rename(from, to);
    },
    link: async (existing, name) => {
      check("link", name);
      await diskFiles.link(existing, name);
    },
    facts: guard("facts", (path) => diskFiles.facts(path)),
    remove: guard("remove", (path) => diskFiles.remove(path)),
    list: guard("list", (path) => diskFiles.list(path)),
    makeFolder: guard("makeFolder", (path) => diskFiles.makeFolder(path)),
    realPath: guard("realPath", (path) => diskFiles.realPath(path)),
    syncFolder: guard("syncFolder", (path) => diskFiles.syncFolder(path)),
  };
}

function faultyFile(
  path: string,
  file: OpenFile,
  fault: (call: FileCall) => Fault | undefined,
): OpenFile {
  const guard = async <Result>(
    operation: keyof OpenFile,
    call: () => Promise<Result>,
  ): Promise<Result> => {
    const found = fault({ operation, path });
    if (found?.type === "fail") throw systemError(found.code);
    return await call();
  };
  return {
    read: async (into, position) => {
      const found = fault({ operation: "read", path, size: into.length });
      if (found?.type === "fail") throw systemError(found.code);
      const count = found?.type === "short" ? Math.min(found.written, into.length) : into.length;
      return await file.read(into.subarray(0, count), position);
    },
    write: async (bytes, position) => {
      const found = fault({ operation: "write", path, size: bytes.length });
      const count = Math.min(
        found === undefined ? bytes.length : (found.written ?? 0),
        bytes.length,
      );
      const written = count === 0 ? 0 : await file.write(bytes.subarray(0, count), position);
      if (found?.type === "fail") throw systemError(found.code);
      return written;
    },
    truncate: (size) => guard("truncate", () => file.truncate(size)),
    sync: () => guard("sync", () => file.sync()),
    facts: () => guard("facts", () => file.facts()),
    // Closed in any case, so that a test leaks no file.
    close: async () => {
      await file.close();
      await guard("close", () => Promise.resolve());
    },
  };
}

const messages: Readonly<Record<string, string>> = {
  ENOSPC: "ENOSPC: no space left on device, write",
  EIO: "EIO: i/o error, fsync",
  EROFS: "EROFS: read-only file system, open",
  EACCES: "EACCES: permission denied, open",
};

function systemError(code: string): Error {
  return Object.assign(new Error(messages[code] ?? `${code}: made up`), { code });
}

/** Thrown by every call after a crash: the process is dead. */
export class Crash extends Error {
  override readonly name = "Crash";
}

/** Files of a process that dies in its call number `at` (0-based), with half of a write done. */
export function crashingFiles(at: number): { readonly files: Files; readonly count: () => number } {
  let count = 0;
  const files = faultyFiles(({ operation, size = 0 }) => {
    const index = count++;
    if (index < at) return undefined;
    if (index === at && operation === "write") {
      return { type: "fail", code: "crash", written: Math.floor(size / 2) };
    }
    throw new Crash(`the process died at call ${index}`);
  });
  return { files, count: () => count };
}

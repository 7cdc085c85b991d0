import path from "node:path";
import type { Random } from "../../src/environment/seeded-random.ts";
import type { FileFacts, Files, OpenFile, OpenMode } from "../../src/run/disk/files.ts";

/**
 * The contents of a file: the bytes that programs read, and the bytes that survive a crash of the
 * machine.
 */
interface Inode {
  readonly identity: string;
  /** Never changed within its length, so a reference to it or to a part keeps its contents. */
  bytes: Buffer;
  durable: Buffer;
  /** The buffer of `bytes`, with room to grow; the bytes before `used` are taken. */
  room: { readonly buffer: Buffer; used: number } | undefined;
  writtenAtMs: number;
}

/** The fault of a file system call; `undefined` for most calls. */
export type DiskFault = "fail" | "short" | "crash" | undefined;

/** Thrown by each call of a process that is dead. */
export class ProcessDeath extends Error {
  override readonly name = "ProcessDeath";
}

/**
 * A disk in memory that loses unsynced data: names before a sync of their folder, and bytes before
 * a sync of their file.
 */
export class MemoryDisk {
  #names = new Map<string, Inode>();
  #durableNames = new Map<string, Inode>();
  #inodeCount = 0;
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  /** A file's contents as text; empty if it is absent. */
  text(file: string): string {
    return this.#names.get(file)?.bytes.toString("utf8") ?? "";
  }

  /** The bytes of a file that survive a crash, as text. */
  durableText(file: string): string {
    return this.#durableNames.get(file)?.durable.toString("utf8") ?? "";
  }

  /** The names of the files in a folder. */
  namesIn(dir: string): readonly string[] {
    return [...this.#names.keys()]
      .filter((name) => path.dirname(name) === dir)
      .map((name) => path.basename(name));
  }

  /** Simulates a power loss: any part of the unsynced data may survive. */
  crash(random: Random): void {
    const names = new Map(this.#durableNames);
    for (const [name, inode] of this.#names) {
      if (!names.has(name) && random.chance(0.5)) names.set(name, inode);
    }
    for (const name of this.#durableNames.keys()) {
      if (!this.#names.has(name) && random.chance(0.5)) names.delete(name);
    }
    for (const inode of new Set([...names.values(), ...this.#names.values()])) {
      const isLonger = inode.bytes.subarray(0, inode.durable.length).equals(inode.durable);
      const extra = isLonger ? inode.bytes.length - inode.durable.length : 0;
      const kept = inode.durable.length + (extra > 0 ? random.between(0, extra) : 0);
      inode.bytes = Buffer.from(isLonger ? inode.bytes.subarray(0, kept) : inode.durable);
      inode.durable = inode.bytes;
    }
    this.#names = new Map(names);
    this.#durableNames = new Map(names);
  }

  /** The disk as one process sees it; `fault` is asked before each call. */
  files(fault: (operation: string, file: string) => DiskFault): Files {
    const call = <Result>(operation: string, file: string, work: () => Result): Promise<Result> => {
      const found = fault(operation, file);
      if (found === "crash") return Promise.reject(new ProcessDeath("the process is dead"));
      if (found === "fail") return Promise.reject(systemError("ENOSPC", operation));
      try {
        return Promise.resolve(work());
      } catch (error) {
        return Promise.reject(error);
      }
    };
    return {
      open: (file, mode) =>
        call("open", file, () => this.#openFile(this.#inodeFor(file, mode), file, fault)),
      facts: (file) => call("facts", file, () => toFacts(this.#names.get(file))),
      rename: (from, to) =>
        call("rename", to, () => {
          const inode = this.#names.get(from);
          if (inode === undefined) throw systemError("ENOENT", from);
          this.#names.delete(from);
          this.#names.set(to, inode);
        }),
      link: (existing, name) =>
        call("link", name, () => {
          const inode = this.#names.get(existing);
          if (inode === undefined) throw systemError("ENOENT", existing);
          if (this.#names.has(name)) throw systemError("EEXIST", name);
          this.#names.set(name, inode);
        }),
      remove: (file) => call("remove", file, () => void this.#names.delete(file)),
      list: (dir) => call("list", dir, () => [...this.namesIn(dir)]),
      makeFolder: (dir) => call("makeFolder", dir, () => {}),
      realPath: (file) => call("realPath", file, () => file),
      syncFolder: (dir) => call("syncFolder", dir, () => this.#syncFolder(dir)),
    };
  }

  #syncFolder(dir: string): void {
    for (const name of this.#durableNames.keys()) {
      if (path.dirname(name) === dir && !this.#names.has(name)) this.#durableNames.delete(name);
    }
    for (const [name, inode] of this.#names) {
      if (path.dirname(name) === dir) this.#durableNames.set(name, inode);
    }
  }

  #inodeFor(file: string, mode: OpenMode): Inode {
    const found = this.#names.get(file);
    if (found !== undefined) {
      if (mode === "create") throw systemError("EEXIST", file);
      if (mode === "replace") found.bytes = Buffer.alloc(0);
      return found;
    }
    if (mode === "read") throw systemError("ENOENT", file);
    this.#inodeCount += 1;
    const empty = Buffer.alloc(0);
    const inode: Inode = {
      identity: `inode-${this.#inodeCount}`,
      bytes: empty,
      durable: empty,
      room: undefined,
      writtenAtMs: this.#now(),
    };
    this.#names.set(file, inode);
    return inode;
  }

  #openFile(
    inode: Inode,
    file: string,
    fault: (operation: string, file: string) => DiskFault,
  ): OpenFile {
    const check = (operation: string): DiskFault => {
      const found = fault(operation, file);
      if (found === "crash") throw new ProcessDeath("the process is dead");
      if (found === "fail" && operation !== "write") throw systemError("EIO", operation);
      return found;
    };
    return {
      read: async (into, position) => {
        check("read");
        return inode.bytes.copy(into, 0, position, position + into.length);
      },
      write: async (bytes, position) => {
        const found = check("write");
        const length =
          found === undefined ? bytes.length : Math.max(Math.floor(bytes.length / 2), 1);
        writeInto(inode, bytes.subarray(0, length), position);
        inode.writtenAtMs = this.#now();
        if (found === "fail") throw systemError("ENOSPC", "write");
        return length;
      },
      truncate: async (size) => {
        check("truncate");
        inode.bytes = Buffer.from(inode.bytes.subarray(0, size));
      },
      sync: async () => {
        check("sync");
        inode.durable = inode.bytes;
      },
      facts: async () => {
        check("facts");
        return toFacts(inode)!;
      },
      close: async () => {},
    };
  }
}

/** Files grow at their end: existing bytes keep their place, and the buffer doubles. */
function writeInto(inode: Inode, bytes: Uint8Array, position: number): void {
  const { bytes: before, room } = inode;
  const end = position + bytes.length;
  const isAtEnd = position === before.length && before.buffer === room?.buffer.buffer;
  if (isAtEnd && room !== undefined && room.used === position && end <= room.buffer.length) {
    room.buffer.set(bytes, position);
    room.used = end;
    inode.bytes = room.buffer.subarray(0, end);
    return;
  }
  const length = Math.max(before.length, end);
  // Of its own: no other buffer is in the same memory.
  const buffer = Buffer.allocUnsafeSlow(Math.max(2 * length, 4096));
  buffer.fill(0, before.length, Math.max(before.length, position));
  before.copy(buffer);
  buffer.set(bytes, position);
  inode.bytes = buffer.subarray(0, length);
  inode.room = { buffer, used: length };
}

function toFacts(inode: Inode | undefined): FileFacts | undefined {
  if (inode === undefined) return undefined;
  const { bytes, identity, writtenAtMs } = inode;
  return { size: bytes.length, identity, writtenAtMs };
}

function systemError(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: made up for ${what}`), { code });
}

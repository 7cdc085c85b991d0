import { randomUUID } from "node:crypto";
import { appendFile, open, readFile, readdir, rename, rm, writeFile } from "node:fs/promises";
import { makeFolder } from "../../files/make-folder.ts";
import path from "node:path";
import { UsageError, describeError } from "../../errors.ts";
import type { SharedPlace } from "./shared-place.ts";

/**
 * Opens a folder that all processes can reach, for example on a file server.
 * @throws UsageError if the folder cannot be created.
 */
export async function openSharedFolder(name: string): Promise<SharedPlace> {
  const dir = path.resolve(name);
  try {
    await makeFolder(dir);
  } catch (error) {
    throw new UsageError(`Cannot use --shared ${name}: ${describeError(error)}`);
  }
  const at = (name: string): string => path.join(dir, name);
  const ready = new Set<string>();
  const makeFolderOf = async (name: string): Promise<void> => {
    const folder = path.dirname(at(name));
    if (ready.has(folder)) return;
    await makeFolder(folder);
    ready.add(folder);
  };
  const remove = async (name: string): Promise<void> => await rm(at(name), { force: true });
  return {
    shown: name,
    async write(name, bytes) {
      await makeFolderOf(name);
      const part = `${at(name)}.${randomUUID()}.part`;
      try {
        await writeFile(part, bytes);
        await rename(part, at(name));
      } catch (error) {
        await rm(part, { force: true });
        throw error;
      }
    },
    async read(name, most, allocate = (size) => Buffer.allocUnsafe(size)) {
      const file = await orAbsent(open(at(name)));
      if (file === undefined) return undefined;
      await using _file = file;
      const bytes = allocate(most + 1);
      let length = 0;
      for (;;) {
        const { bytesRead } = await file.read(bytes, length, bytes.length - length, length);
        length += bytesRead;
        if (bytesRead === 0 || length === bytes.length) return bytes.subarray(0, length);
      }
    },
    remove,
    columnsOf: (run) => path.join(dir, "columns", run),
    recordings: {
      begin: async (job) => await beginRecording(at(job)),
      remove: async (job) => await rm(at(job), { recursive: true, force: true }),
    },
  };
}

async function beginRecording(folder: string) {
  await makeFolder(folder);
  const numbers = (await readdir(folder)).map(Number).filter((number) => number >= 1);
  const earlier: Buffer[] = [];
  for (const number of numbers.toSorted((one, other) => other - one)) {
    const bytes = await orAbsent(readFile(path.join(folder, String(number))));
    if (bytes !== undefined) earlier.push(bytes);
  }
  for (let number = Math.max(0, ...numbers) + 1; ; number++) {
    const file = path.join(folder, String(number));
    try {
      await writeFile(file, "", { flag: "wx" });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") continue;
      throw error;
    }
    // If another process removed the folder, it already has the result, and these lines are not
    // needed.
    const append = async (text: string): Promise<void> => {
      await orAbsent(appendFile(file, text));
    };
    return { number, earlier, append };
  }
}

async function orAbsent<Value>(work: Promise<Value>): Promise<Value | undefined> {
  try {
    return await work;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

import { codeOf, diskFiles, type Files, type OpenFile, withFile } from "../disk/files.ts";
import { PackedFile } from "./packed-file.ts";

const packedEnding = ".gz";

/** Returns the name under which `turnwright pack` keeps a file. */
export function packedName(file: string): string {
  return `${file}${packedEnding}`;
}

/**
 * Makes packed files readable under their own names. If a file exists both packed and unpacked, a process was killed
 * before it removed one of them, and the unpacked one counts. A name that ends in `.gz` is read as a packed file.
 */
export function withPacked(files: Files): Files {
  const open = async (path: string): Promise<OpenFile> => {
    if (path.endsWith(packedEnding)) return await openPacked(files, path);
    let missing: unknown;
    // Another process may pack or unpack the file between two calls.
    for (const name of [path, packedName(path), path]) {
      try {
        return name === path ? await files.open(path, "read") : await openPacked(files, name);
      } catch (error) {
        if (codeOf(error) !== "ENOENT") throw error;
        missing ??= error;
      }
    }
    throw missing;
  };
  const stored: Files = {
    ...files,
    open: async (path, mode) => (mode === "read" ? await open(path) : await files.open(path, mode)),
    facts: async (path) => {
      const facts = path.endsWith(packedEnding) ? undefined : await files.facts(path);
      return facts ?? (await withFile(stored, path, async (file) => await file.facts()));
    },
  };
  return stored;
}

async function openPacked(files: Files, path: string): Promise<OpenFile> {
  return await PackedFile.open(await files.open(path, "read"), path);
}

/** The machine's files, for all code that reads runs, packed or not. */
export const storedFiles: Files = withPacked(diskFiles);

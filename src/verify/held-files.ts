import { codeOf, type FileFacts, type Files, type OpenFile } from "../run/disk/files.ts";
import { endOfCompleteLines } from "../run/disk/last-line.ts";

/**
 * Files of which some keep the content that they had when they were opened, until this is disposed
 * of.
 */
interface HeldFiles extends Files, AsyncDisposable {}

/** An open file with its facts at that time. */
interface HeldFile {
  readonly open: OpenFile;
  readonly facts: FileFacts;
}

/**
 * Opens files that another process may still write. Reads return the content at the time of
 * opening, even if a file is replaced later.
 * @param paths - In the order of opening. Open dependent files first: if A is written before B,
 *   open B before A, so that A has everything that B refers to.
 * @param isGrowing - Ignores an incomplete last line, because it may still be being written.
 */
export async function holdFiles(
  files: Files,
  paths: readonly string[],
  { isGrowing }: { readonly isGrowing: boolean },
): Promise<HeldFiles> {
  const held = new Map<string, HeldFile | { readonly missing: unknown }>();
  const close = async (): Promise<void> => {
    for (const file of held.values()) if ("open" in file) await file.open.close();
  };
  try {
    for (const path of paths) held.set(path, await holdFile(files, path, isGrowing));
  } catch (error) {
    await close();
    throw error;
  }
  return {
    ...files,
    async open(path, mode) {
      const file = held.get(path);
      if (file === undefined) return await files.open(path, mode);
      if ("missing" in file) throw file.missing;
      return readerOf(file);
    },
    async facts(path) {
      const file = held.get(path);
      if (file === undefined) return await files.facts(path);
      return "missing" in file ? undefined : file.facts;
    },
    [Symbol.asyncDispose]: close,
  };
}

async function holdFile(files: Files, path: string, isGrowing: boolean) {
  let open: OpenFile;
  try {
    open = await files.open(path, "read");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return { missing: error };
    throw error;
  }
  try {
    const facts = await open.facts();
    const size = isGrowing ? await endOfCompleteLines(open, facts.size) : facts.size;
    return { open, facts: { ...facts, size } };
  } catch (error) {
    await open.close();
    throw error;
  }
}

/** The caller may close this file and open it again. */
function readerOf({ open, facts }: HeldFile): OpenFile {
  return {
    ...open,
    read: async (into, position) => {
      const length = Math.max(0, Math.min(into.length, facts.size - position));
      return length === 0 ? 0 : await open.read(into.subarray(0, length), position);
    },
    facts: () => Promise.resolve(facts),
    close: () => Promise.resolve(),
  };
}

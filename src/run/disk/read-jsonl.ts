import { splitLines } from "../../text/split-lines.ts";
import { storedFiles } from "../gzip/stored-files.ts";
import { codeOf, type OpenFile, readBlocks } from "./files.ts";

/** Reads the lines of a run's text file in order, also of a packed one; none if the file does not exist. */
export async function* readLines(path: string): AsyncGenerator<string> {
  let file: OpenFile;
  try {
    file = await storedFiles.open(path, "read");
  } catch (error) {
    if (codeOf(error) === "ENOENT") return;
    throw error;
  }
  yield* splitLines(blocksOf(file), path);
}

/**
 * Reads the bytes of a run's file in order, also of a packed one.
 *
 * @throws the system's own error if the file does not exist or cannot be read.
 */
export async function* readStored(path: string): AsyncGenerator<Uint8Array> {
  yield* blocksOf(await storedFiles.open(path, "read"));
}

/** Reads the bytes of an open file, and closes it. */
async function* blocksOf(file: OpenFile): AsyncGenerator<Uint8Array> {
  try {
    // The block is reused, and the reader may keep it.
    for await (const block of readBlocks(file)) yield Buffer.from(block);
  } finally {
    await file.close();
  }
}

/**
 * Reads the values of a file of JSON lines. Skips a torn last line: its write was never acknowledged.
 *
 * @throws SyntaxError if a line before the last is not JSON.
 */
export async function* readJsonl(path: string): AsyncGenerator {
  let torn: SyntaxError | undefined;
  for await (const line of readLines(path)) {
    if (torn !== undefined) throw torn;
    if (line === "") continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      torn = error;
      continue;
    }
    yield value;
  }
}

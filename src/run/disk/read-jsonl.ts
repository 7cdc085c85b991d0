import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { splitLines } from "../../text/split-lines.ts";

/** Reads the lines of a text file in order; none if the file does not exist. */
export async function* readLines(path: string): AsyncGenerator<string> {
  if (!(await exists(path))) return;
  yield* splitLines(createReadStream(path), path);
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

async function exists(path: string): Promise<boolean> {
  return await stat(path).then(
    () => true,
    () => false,
  );
}

import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { splitLines } from "../../text/split-lines.ts";

/** The lines of a text file, one after the other; none where the file does not exist. */
export async function* readLines(path: string): AsyncGenerator<string> {
  if (!(await exists(path))) return;
  yield* splitLines(createReadStream(path), path);
}

/**
 * The values of a file of JSON lines. A last line that is torn is passed over: it was never
 * acknowledged.
 *
 * @throws SyntaxError where a line before the last is no JSON.
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

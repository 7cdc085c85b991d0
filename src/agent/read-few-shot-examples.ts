import { UsageError, describeError } from "../errors.ts";
import { readTextFile } from "../text/decode-text.ts";
import { parseStrictJson } from "../json/strict-json.ts";

/**
 * Reads example conversations in τ-bench's format: JSON lines with the conversation's text in
 * `messages_display`.
 *
 * @throws UsageError that names the file and the line if an example cannot be read.
 */
export async function readFewShotExamples(file: string): Promise<readonly string[]> {
  let text: string;
  try {
    text = await readTextFile(file, { mark: "drop" });
  } catch (error) {
    throw new UsageError(`Cannot read the examples ${file}: ${describeError(error)}`, {
      cause: error,
    });
  }
  const lines = text.split("\n");
  if (lines.at(-1) === "") lines.pop();
  return lines.map((line, index) => readExample(line, `${file}:${index + 1}`));
}

function readExample(line: string, place: string): string {
  let row: unknown;
  try {
    row = parseStrictJson(line);
  } catch (error) {
    throw new UsageError(`Cannot read ${place}: ${describeError(error)}`, { cause: error });
  }
  const example = (row as { messages_display?: unknown } | null)?.messages_display;
  if (typeof example === "string") return example;
  throw new UsageError(`Cannot read ${place}: expected {"messages_display": "…"}`);
}

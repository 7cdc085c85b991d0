import { writeFile } from "node:fs/promises";
import { z } from "zod";
import { UsageError, describeError } from "../../errors.ts";
import { readTextFile } from "../../text/decode-text.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { exactOf, parseExactJson } from "../../json/exact-json.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import type { ListedTool } from "./listed-tool.ts";

const keptSchema = z.array(
  z.object({
    name: z.string(),
    title: z.string().optional(),
    description: z.string().optional(),
    inputSchema: z.looseObject({ type: z.literal("object") }),
  }),
);

/**
 * Returns the tools in a file. If there is no file, calls `list` and writes its tools to the file.
 * @throws UsageError if the file has other content or cannot be written, and the errors of `list`.
 */
export async function keepListedTools(
  file: string,
  list: () => Promise<readonly ListedTool[]>,
): Promise<readonly ListedTool[]> {
  const text = await readTextFile(file, { mark: "drop" }).catch((error: unknown) => {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw new UsageError(`Cannot read ${file}: ${describeError(error)}`, { cause: error });
  });
  if (text !== undefined) return readKept(file, text);
  const listed = await list();
  // Keeps only the members that are used, so that the tools are the same when they are read from
  // the file.
  const used = exactOf(keptSchema.parse(listed));
  const kept = new Redactor().text(stringifyPythonJson(used, { ensureAscii: false, indent: 2 }));
  try {
    await writeFile(file, `${kept}\n`);
  } catch (error) {
    throw new UsageError(`Cannot write ${file}: ${describeError(error)}`, { cause: error });
  }
  return readKept(file, kept);
}

function readKept(file: string, text: string): readonly ListedTool[] {
  try {
    return keptSchema.parse(parseExactJson(text)) as readonly ListedTool[];
  } catch (error) {
    throw new UsageError(
      `Cannot read ${file}: expected the tools of an MCP server as createMcpTools() wrote them; remove it, and ` +
        "they are asked for again",
      { cause: error },
    );
  }
}

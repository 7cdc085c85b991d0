import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../errors.ts";
import type { AddedToken } from "./codec.ts";

/** A `tokenizer.json`, read and checked as far as every codec needs it. */
export interface TokenizerFile {
  /** The whole document, as the tokenizer libraries take it. */
  readonly document: Readonly<Record<string, unknown>>;
  readonly addedTokens: readonly AddedToken[];
}

/**
 * Reads the `tokenizer.json` of a model folder.
 *
 * @throws UsageError where the folder or the file is missing or broken.
 */
export async function readTokenizerFile(modelDir: string): Promise<TokenizerFile> {
  const folder = await stat(modelDir).catch(() => undefined);
  if (folder?.isDirectory() !== true) {
    throw new UsageError(`Cannot open the model folder ${modelDir}: it does not exist or is no folder`);
  }
  const file = path.join(modelDir, "tokenizer.json");
  let text: string;
  try {
    text = await readFile(file, "utf8");
  } catch (cause) {
    throw new UsageError(
      `Cannot read ${file}: expected the fast tokenizer's file; save it there with ` +
        "`AutoTokenizer.from_pretrained(…).save_pretrained(folder)`",
      { cause },
    );
  }
  let document: unknown;
  try {
    document = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`Cannot read ${file}: it is no JSON, ${describeError(cause)}`, { cause });
  }
  return { document: checkDocument(document, file), addedTokens: readAddedTokens(document, file) };
}

function checkDocument(document: unknown, file: string): Readonly<Record<string, unknown>> {
  if (typeof document !== "object" || document === null || !("model" in document)) {
    throw new UsageError(`Cannot read ${file}: it has no "model", expected a tokenizer`);
  }
  return document as Readonly<Record<string, unknown>>;
}

function readAddedTokens(document: unknown, file: string): readonly AddedToken[] {
  const entries = (document as { added_tokens?: unknown }).added_tokens ?? [];
  if (!Array.isArray(entries)) {
    throw new UsageError(`Cannot read ${file}: "added_tokens" is no list`);
  }
  return entries.map((entry: unknown, index) => {
    const { id, content, special } = (entry ?? {}) as Partial<Record<string, unknown>>;
    if (typeof id !== "number" || typeof content !== "string") {
      throw new UsageError(`Cannot read ${file}: added_tokens[${index}] has no id and content`);
    }
    return { id, content, special: special === true };
  });
}

import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../errors.ts";
import { byteOrderMark, decodeText } from "../text/decode-text.ts";

/** A JSON document's object. */
export type JsonObject = Readonly<Record<string, unknown>>;

/**
 * Asserts that the folder of a model exists.
 *
 * @throws UsageError saying how to get it where it does not.
 */
export async function assertModelFolder(dir: string): Promise<void> {
  const found = await stat(dir).catch((error: NodeJS.ErrnoException) => error.code ?? "error");
  if (typeof found !== "string" && found.isDirectory()) return;
  const what = typeof found === "string" ? "it does not exist" : "it is a file";
  const isHubName = /^[\w.-]+\/[\w.-]+$/.test(dir);
  const remedy = isHubName
    ? `; a name on the Hub must be downloaded first, as by \`hf download ${dir} --local-dir DIR\``
    : "";
  throw new UsageError(
    `Cannot open the model folder ${dir}: ${what}, ` +
      `expected a folder with tokenizer.json and tokenizer_config.json${remedy}`,
  );
}

/** Longest configuration or chat template that is read, in bytes. */
const maxTextBytes = 64 * 1024 * 1024;

/**
 * The text of a file in a model's folder, or `undefined` where the folder has none of that name.
 *
 * @throws UsageError where it cannot be read, is no ordinary file, is not UTF-8, or is longer than 64 MiB.
 */
export async function readModelText(dir: string, name: string): Promise<string | undefined> {
  const bytes = await readModelBytes(dir, name, maxTextBytes);
  return bytes && textOfModel(bytes, path.join(dir, name));
}

/**
 * The bytes of a file in a model's folder, or `undefined` where the folder has none of that name.
 * Devices and pipes, which may never end, are not opened.
 *
 * @throws UsageError where it cannot be read, is no ordinary file, or is longer than `maxBytes`.
 */
export async function readModelBytes(
  dir: string,
  name: string,
  maxBytes: number,
): Promise<Buffer | undefined> {
  const file = path.join(dir, name);
  try {
    const found = await stat(file);
    if (!found.isFile()) throw new UsageError(`Cannot read ${file}: expected an ordinary file`);
    if (found.size > maxBytes) {
      throw new UsageError(
        `Cannot read ${file}: it has ${found.size} bytes, expected at most ${maxBytes}`,
      );
    }
    return await readFile(file);
  } catch (cause) {
    if (cause instanceof UsageError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new UsageError(`Cannot read ${file}: ${describeError(cause)}`, { cause });
  }
}

/**
 * The text of a model's file, with a byte order mark where it has one: transformers keeps it too.
 *
 * @throws UsageError where it is not UTF-8.
 */
export function textOfModel(bytes: Buffer, file: string): string {
  try {
    return decodeText(bytes);
  } catch (cause) {
    throw new UsageError(`Cannot read ${file}: ${describeError(cause)}`, { cause });
  }
}

/**
 * The object in a JSON file of a model's folder, or `undefined` where the folder has none of that
 * name.
 *
 * @throws UsageError where it cannot be read, or holds something else.
 */
export async function readModelJson(dir: string, name: string): Promise<JsonObject | undefined> {
  const text = await readModelText(dir, name);
  return text === undefined ? undefined : parseModelJson(text, path.join(dir, name));
}

/**
 * The object in a JSON text; `file` names it in the message.
 *
 * @throws UsageError where the text is no JSON, or holds something else.
 */
export function parseModelJson(text: string, file: string): JsonObject {
  if (text.startsWith(byteOrderMark)) {
    throw new UsageError(
      `Cannot read ${file}: it begins with a byte order mark, expected JSON without one`,
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`Cannot read ${file}: ${describeError(cause)}, expected JSON`, { cause });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new UsageError(`Cannot read ${file}: it holds no object, expected one`);
  }
  return value as JsonObject;
}

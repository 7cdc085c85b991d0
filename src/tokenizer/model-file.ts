import { isObject, type JsonObject } from "../values/is-object.ts";
import { readFile, stat } from "node:fs/promises";
import path from "node:path";
import { UsageError, describeError } from "../errors.ts";
import { byteOrderMark, decodeText } from "../text/decode-text.ts";

/** Returns the value if it is an object, otherwise an empty object. */
export function objectOf(value: unknown): JsonObject {
  return isObject(value) ? value : {};
}

/**
 * Asserts that a model's folder exists.
 *
 * @throws UsageError saying how to get it if it does not.
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

/** Maximum size of a configuration or chat template, in bytes. */
const maxTextBytes = 64 * 1024 * 1024;

/**
 * Reads a text file of a model's folder, or returns `undefined` if it does not exist.
 *
 * @throws UsageError if it cannot be read, is not an ordinary file, is not UTF-8, or is longer than
 *   64 MiB.
 */
export async function readModelText(dir: string, name: string): Promise<string | undefined> {
  const bytes = await readModelBytes(dir, name, maxTextBytes);
  return bytes && textOfModel(bytes, path.join(dir, name));
}

/**
 * Reads a file of a model's folder, or returns `undefined` if it does not exist. Devices and pipes
 * are not opened, because they may never end.
 *
 * @throws UsageError if it cannot be read, is not an ordinary file, or is longer than `maxBytes`.
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
 * Decodes a model's file. Keeps a byte order mark, as transformers does.
 *
 * @throws UsageError if it is not UTF-8.
 */
export function textOfModel(bytes: Buffer, file: string): string {
  try {
    return decodeText(bytes);
  } catch (cause) {
    throw new UsageError(`Cannot read ${file}: ${describeError(cause)}`, { cause });
  }
}

/**
 * Reads a JSON object from a file of a model's folder, or returns `undefined` if the file does not
 * exist.
 *
 * @throws UsageError if it cannot be read, or is not a JSON object.
 */
export async function readModelJson(dir: string, name: string): Promise<JsonObject | undefined> {
  const text = await readModelText(dir, name);
  return text === undefined ? undefined : parseModelJson(text, path.join(dir, name));
}

/**
 * Parses a JSON object; `file` names it in messages.
 *
 * @throws UsageError if the text is not a JSON object.
 */
export function parseModelJson(text: string, file: string): JsonObject {
  if (text.startsWith(byteOrderMark)) {
    throw new UsageError(
      `Cannot read ${file}: it starts with a byte order mark, expected JSON without one`,
    );
  }
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new UsageError(`Cannot read ${file}: ${describeError(cause)}, expected JSON`, { cause });
  }
  if (isObject(value)) return value;
  throw new UsageError(`Cannot read ${file}: it is not an object, expected one`);
}

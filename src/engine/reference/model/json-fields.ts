import { isObject, type JsonObject } from "../../../values/is-object.ts";
import path from "node:path";
import { UsageError } from "../../../errors.ts";
import { readTextFile } from "../../../text/decode-text.ts";

/** The fields of a JSON object in a model's folder. */
export interface JsonFields {
  /** Returns the value of a field, or `undefined` if it is absent or null. */
  get(field: string): unknown;
  /**
   * Returns an integer of at least 1.
   *
   * @throws UsageError naming folder, file and field if it is absent without a fallback, or another
   *   value.
   */
  count(field: string, fallback?: number): number;
  /**
   * Returns a positive number.
   *
   * @throws UsageError if it is absent without a fallback, or another value.
   */
  positive(field: string, fallback?: number): number;
  /**
   * Returns a boolean.
   *
   * @throws UsageError if it is another value.
   */
  flag(field: string, fallback: boolean): boolean;
  /** Returns the fields of an object in a field, or `undefined` if it is absent. */
  object(field: string): JsonFields | undefined;
  /** Returns the error for a field that cannot be used. */
  error(field: string, expected: string): UsageError;
}

/**
 * Reads a JSON file of a model's folder.
 *
 * @throws UsageError naming folder, file and remedy if it cannot be read.
 */
export async function readJsonFields(folder: string, file: string): Promise<JsonFields> {
  const fields = await readOptionalJsonFields(folder, file);
  if (fields !== undefined) return fields;
  throw new UsageError(
    `Cannot load the model in ${folder}: there is no ${file}, expected a model's folder as ` +
      "Hugging Face lays it out (config.json, model.safetensors, tokenizer.json)",
  );
}

/** Reads a JSON file that may be missing. Returns `undefined` if it is missing. */
export async function readOptionalJsonFields(
  folder: string,
  file: string,
): Promise<JsonFields | undefined> {
  let text: string;
  try {
    text = await readTextFile(path.join(folder, file));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR") return undefined;
    throw new UsageError(`Cannot read ${file} in ${folder}`, { cause: error });
  }
  return toFields(parseObject(text, { folder, file }), { folder, file, prefix: "" });
}

interface Place {
  readonly folder: string;
  readonly file: string;
  readonly prefix: string;
}

function parseObject(text: string, { folder, file }: Omit<Place, "prefix">): JsonObject {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`Cannot read ${file} in ${folder}: it is not JSON`, { cause: error });
  }
  if (isObject(value)) return value;
  throw new UsageError(`Cannot read ${file} in ${folder}: it is not a JSON object`);
}

function toFields(object: JsonObject, place: Place): JsonFields {
  const { folder, file, prefix } = place;
  const get = (field: string): unknown => object[field] ?? undefined;
  const error = (field: string, expected: string): UsageError =>
    new UsageError(
      `Cannot load the model in ${folder}: ${prefix}${field} in ${file} is ` +
        `${JSON.stringify(get(field)) ?? "missing"}, expected ${expected}`,
    );
  const number = (
    field: string,
    fallback: number | undefined,
    { expected, accepts }: { expected: string; accepts: (value: number) => boolean },
  ): number => {
    const value = get(field) ?? fallback;
    if (typeof value === "number" && accepts(value)) return value;
    throw error(field, expected);
  };
  return {
    get,
    error,
    count: (field, fallback) =>
      number(field, fallback, {
        expected: "a whole number of at least 1",
        accepts: (value) => Number.isSafeInteger(value) && value >= 1,
      }),
    positive: (field, fallback) =>
      number(field, fallback, {
        expected: "a number above 0",
        accepts: (value) => Number.isFinite(value) && value > 0,
      }),
    flag(field, fallback) {
      const value = get(field) ?? fallback;
      if (typeof value === "boolean") return value;
      throw error(field, "true or false");
    },
    object(field) {
      const value = get(field);
      if (value === undefined) return undefined;
      if (isObject(value)) return toFields(value, { folder, file, prefix: `${prefix}${field}.` });
      throw error(field, "an object");
    },
  };
}

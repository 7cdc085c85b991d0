import { open, readdir } from "node:fs/promises";
import path from "node:path";
import type { UsageError } from "../../../errors.ts";
import {
  INDEX_FILE,
  readBytes,
  readSafetensorsHeader,
  SINGLE_FILE,
  unusableWeights,
} from "../../http/safetensors-header.ts";
import type { FloatFormat } from "./float-format.ts";
import { decodeFloats, FLOAT_BYTES, isFloatFormat } from "./float-format.ts";
import { readOptionalJsonFields } from "./json-fields.ts";

/** The location of a tensor. */
export interface TensorEntry {
  readonly name: string;
  /** Path within the folder. */
  readonly file: string;
  readonly format: FloatFormat;
  readonly shape: readonly number[];
  /** Position in the file, in bytes. */
  readonly start: number;
}

/** The tensors of a model's folder. */
export interface TensorDirectory {
  readonly folder: string;
  readonly entries: ReadonlyMap<string, TensorEntry>;
}

/** Number of floats that are decoded at once, in a few milliseconds. */
const PIECE_FLOATS = 262_144;

/**
 * Lists the tensors of `model.safetensors`, or of the files that `model.safetensors.index.json`
 * names if all of them exist.
 *
 * **Source:** huggingface/safetensors README.md (format); the index as transformers writes it.
 *
 * @throws UsageError naming folder, file and tensor if one cannot be used.
 */
export async function readTensorDirectory(folder: string): Promise<TensorDirectory> {
  const entries = new Map<string, TensorEntry>();
  for (const file of await listFiles(folder)) {
    for (const entry of await readEntries(folder, file)) entries.set(entry.name, entry);
  }
  return { folder, entries };
}

async function listFiles(folder: string): Promise<readonly string[]> {
  const index = await readOptionalJsonFields(folder, INDEX_FILE);
  if (index === undefined) return [SINGLE_FILE];
  const names = Object.values((index.get("weight_map") ?? {}) as Record<string, unknown>);
  const files = [...new Set(names)];
  const isPlain = (name: unknown): name is string =>
    typeof name === "string" && path.basename(name) === name;
  if (files.length === 0 || !files.every(isPlain)) {
    throw index.error("weight_map", "names of files in the folder");
  }
  const there = new Set(await readdir(folder));
  const missing = files.find((file) => !there.has(file));
  if (missing === undefined) return files;
  // The index is left over from weights in several files. As transformers does, use the single file.
  if (there.has(SINGLE_FILE)) return [SINGLE_FILE];
  throw unusableWeights(folder, missing, {
    what: `is missing, which ${INDEX_FILE} names (a download that was cut off?)`,
  });
}

async function readEntries(folder: string, file: string): Promise<readonly TensorEntry[]> {
  const tensors = await readSafetensorsHeader(folder, file);
  return tensors.map(({ name, dtype, shape, start, end }) => {
    const problem = (what: string): UsageError =>
      unusableWeights(folder, file, { what: `holds tensor ${name} ${what}` });
    if (!isFloatFormat(dtype)) {
      throw problem(`as ${JSON.stringify(dtype)}, not as F32, F16 or BF16`);
    }
    const bytes = shape.reduce((product, size) => product * size, 1) * FLOAT_BYTES[dtype];
    if (end - start !== bytes) throw problem("with offsets that do not fit");
    return { name, file, format: dtype, shape, start };
  });
}

/**
 * Reads a tensor's floats in pieces, in order. Other tasks run between the pieces.
 *
 * @throws UsageError if the file ends early.
 */
export async function* readTensor(
  folder: string,
  { file, format, shape, start }: TensorEntry,
): AsyncGenerator<Float32Array> {
  await using handle = await open(path.join(folder, file));
  let left = shape.reduce((product, size) => product * size, 1);
  let position = start;
  while (left > 0) {
    const count = Math.min(left, PIECE_FLOATS);
    const bytes = await readBytes(handle, position, count * FLOAT_BYTES[format]);
    yield decodeFloats(bytes, format);
    left -= count;
    position += bytes.byteLength;
  }
}

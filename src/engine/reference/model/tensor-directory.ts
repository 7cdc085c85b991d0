import type { FileHandle } from "node:fs/promises";
import { open } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../../errors.ts";
import type { FloatFormat } from "./float-format.ts";
import { decodeFloats, FLOAT_BYTES, isFloatFormat } from "./float-format.ts";
import { readOptionalJsonFields } from "./json-fields.ts";

/** Where a tensor lies. */
export interface TensorEntry {
  readonly name: string;
  /** Within the folder. */
  readonly file: string;
  readonly format: FloatFormat;
  readonly shape: readonly number[];
  /** In the file, in bytes. */
  readonly start: number;
}

/** The tensors of a model's folder. */
export interface TensorDirectory {
  readonly folder: string;
  readonly entries: ReadonlyMap<string, TensorEntry>;
}

const SINGLE_FILE = "model.safetensors";
const INDEX_FILE = "model.safetensors.index.json";
/** The format's own limit. */
const MAX_HEADER_BYTES = 100_000_000;
/** Floats decoded at once: a few milliseconds of work. */
const PIECE_FLOATS = 262_144;

/**
 * Lists the tensors of `model.safetensors`, or of the files that `model.safetensors.index.json`
 * names.
 *
 * **Source:** huggingface/safetensors README.md (format); the index as transformers writes it.
 *
 * @throws UsageError naming folder, file and tensor where one cannot be used.
 */
export async function readTensorDirectory(folder: string): Promise<TensorDirectory> {
  const entries = new Map<string, TensorEntry>();
  for (const file of await listFiles(folder)) {
    for (const entry of await readHeader(folder, file)) entries.set(entry.name, entry);
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
  if (files.length > 0 && files.every(isPlain)) return files;
  throw index.error("weight_map", "names of files in the folder");
}

async function readHeader(folder: string, file: string): Promise<readonly TensorEntry[]> {
  const problem = (what: string, cause?: unknown): UsageError =>
    new UsageError(
      `Cannot load the model in ${folder}: ${file} ${what}, expected weights in safetensors format`,
      { cause },
    );
  let handle: FileHandle;
  try {
    handle = await open(path.join(folder, file));
  } catch (error) {
    throw problem("cannot be opened", error);
  }
  await using opened = handle;
  const { size } = await opened.stat();
  const headerBytes = size < 8 ? 0 : Number((await readBytes(opened, 0, 8)).readBigUInt64LE());
  if (headerBytes < 2 || headerBytes > Math.min(MAX_HEADER_BYTES, size - 8)) {
    throw problem("has no header");
  }
  const text = (await readBytes(opened, 8, headerBytes)).toString("utf8");
  let header: Record<string, unknown>;
  try {
    header = JSON.parse(text) as Record<string, unknown>;
  } catch (error) {
    throw problem("has a header that is no JSON", error);
  }
  const dataStart = 8 + headerBytes;
  return Object.entries(header)
    .filter(([name]) => name !== "__metadata__")
    .map(([name, value]) => {
      const entry = toEntry(value, { name, file, dataStart, dataBytes: size - dataStart });
      if (typeof entry !== "string") return entry;
      throw problem(`holds tensor ${name} ${entry}`);
    });
}

/** The entry, or what is wrong with it. */
function toEntry(
  value: unknown,
  place: { name: string; file: string; dataStart: number; dataBytes: number },
): TensorEntry | string {
  const { dtype, shape, data_offsets: offsets } = value as Record<string, unknown>;
  if (!isFloatFormat(dtype)) return `as ${JSON.stringify(dtype)}, not as F32, F16 or BF16`;
  if (!isCounts(shape)) return "without a shape";
  if (!isCounts(offsets) || offsets.length !== 2) return "without offsets";
  const [start, end] = offsets as [number, number];
  const bytes = shape.reduce((product, size) => product * size, 1) * FLOAT_BYTES[dtype];
  if (end - start !== bytes || end > place.dataBytes) return "with offsets that do not fit";
  return {
    name: place.name,
    file: place.file,
    format: dtype,
    shape,
    start: place.dataStart + start,
  };
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

/**
 * Reads a tensor's floats in pieces, in order; between pieces other work gets its turn.
 *
 * @throws UsageError where the file ends early.
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

async function readBytes(
  handle: FileHandle,
  position: number,
  length: number,
): Promise<Buffer<ArrayBuffer>> {
  const buffer = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await handle.read(buffer, filled, length - filled, position + filled);
    if (bytesRead === 0) throw new UsageError("Cannot read the weights: their file ends early");
    filled += bytesRead;
  }
  return buffer;
}

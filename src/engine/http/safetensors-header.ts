import { open, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../errors.ts";

/** The header entry of one tensor in a safetensors file. */
export interface TensorHeader {
  readonly name: string;
  /** The type's name in the file, such as `BF16`. */
  readonly dtype: unknown;
  readonly shape: readonly number[];
  /** Position in the file, in bytes. `end` is exclusive. */
  readonly start: number;
  readonly end: number;
}

/** The format's own limit. */
const MAX_HEADER_BYTES = 100_000_000;

/** The name of a folder's weights if they are in one file. */
export const SINGLE_FILE = "model.safetensors";

/** The name of the file that lists a folder's weights if they are in several files. */
export const INDEX_FILE = "model.safetensors.index.json";

/** Returns the error of a weights file that cannot be used. */
export function unusableWeights(
  folder: string,
  file: string,
  { what, cause }: { readonly what: string; readonly cause?: unknown },
): UsageError {
  return new UsageError(
    `Cannot load the model in ${folder}: ${file} ${what}, expected weights in safetensors format`,
    { cause },
  );
}

/**
 * Lists a file's tensors, and checks that the file is long enough to contain them.
 *
 * **Source:** huggingface/safetensors README.md (format).
 *
 * @throws UsageError naming folder, file and tensor if the file is not in this format or not
 *   complete.
 */
export async function readSafetensorsHeader(
  folder: string,
  file: string,
): Promise<readonly TensorHeader[]> {
  const problem = (what: string, cause?: unknown): UsageError =>
    unusableWeights(folder, file, { what, cause });
  let handle: FileHandle;
  try {
    handle = await open(path.join(folder, file));
  } catch (error) {
    throw problem("cannot be opened", error);
  }
  await using opened = handle;
  const stat = await opened.stat();
  if (!stat.isFile()) throw problem("is not a file");
  const { size } = stat;
  const headerBytes = size < 8 ? 0 : Number((await readBytes(opened, 0, 8)).readBigUInt64LE());
  if (headerBytes < 2 || headerBytes > Math.min(MAX_HEADER_BYTES, size - 8)) {
    throw problem("has no header");
  }
  const text = (await readBytes(opened, 8, headerBytes)).toString("utf8");
  let header: unknown;
  try {
    header = JSON.parse(text);
  } catch (error) {
    throw problem("has a header that is not JSON", error);
  }
  if (typeof header !== "object" || header === null) throw problem("has a header without tensors");
  const dataStart = 8 + headerBytes;
  return Object.entries(header)
    .filter(([name]) => name !== "__metadata__")
    .map(([name, value]) => {
      const tensor = toTensor(value, { name, dataStart, dataBytes: size - dataStart });
      if (typeof tensor !== "string") return tensor;
      throw problem(`holds tensor ${name} ${tensor}`);
    });
}

/** Returns the tensor, or a description of its problem. */
function toTensor(
  value: unknown,
  place: { name: string; dataStart: number; dataBytes: number },
): TensorHeader | string {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  if (!isCounts(shape)) return "without a shape";
  if (!isCounts(offsets) || offsets.length !== 2) return "without offsets";
  const [start, end] = offsets as [number, number];
  if (end < start || end > place.dataBytes) return "with offsets that do not fit";
  const { name, dataStart } = place;
  return { name, dtype, shape, start: dataStart + start, end: dataStart + end };
}

function isCounts(value: unknown): value is readonly number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

/**
 * Reads `length` bytes at `position`.
 *
 * @throws UsageError if the file ends early.
 */
export async function readBytes(
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

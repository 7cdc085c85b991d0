import type { Generation } from "../../engine/engine.ts";

/** A generation in the recording: its numbers are bytes in base64. JSON-able. */
export interface WrittenGeneration extends Omit<Generation, "outputIds" | "logprobs"> {
  /** The ids as variable-length integers: seven bits a byte, lowest bits first; the last byte of an id is below 128. */
  readonly ids: string;
  /**
   * The logprobs as little-endian 32-bit floats, in which engines compute. Absent if this form would change a logprob.
   */
  readonly logprobs?: string;
  /** The logprobs as little-endian 64-bit floats, if `logprobs` is absent. */
  readonly logprobs64?: string;
}

/** The most numbers for which the kept buffer is used. Nearly all turns have fewer. */
const keptLength = 4096;
const mostBytes = 8;
const keptBytes = Buffer.allocUnsafeSlow(keptLength * mostBytes);

/** Encodes a generation without loss. */
export function writeGeneration({ outputIds, logprobs, ...rest }: Generation): WrittenGeneration {
  const isExact = logprobs.every((logprob) => Math.fround(logprob) === logprob);
  return {
    ids: writeIds(outputIds),
    ...(isExact
      ? { logprobs: toBase64(logprobs, Float32Array) }
      : { logprobs64: toBase64(logprobs, Float64Array) }),
    ...rest,
  };
}

/**
 * Decodes a generation.
 *
 * @throws TypeError or RangeError if it is not one that `writeGeneration()` encoded.
 */
export function readGeneration(written: WrittenGeneration): Generation {
  const { ids, logprobs, logprobs64, ...rest } = written;
  if ((logprobs ?? logprobs64) === undefined) throw new TypeError("the logprobs are missing");
  return { outputIds: readIds(ids), logprobs: readLogprobs(written), ...rest };
}

/**
 * Decodes the ids of a generation.
 *
 * @throws RangeError if the last id is not complete.
 */
export function readIds(text: string): number[] {
  const ids: number[] = [];
  let id = 0;
  let shift = 0;
  for (const byte of Buffer.from(text, "base64")) {
    id |= (byte & 127) << shift;
    if (byte < 128) {
      ids.push(id);
      id = 0;
      shift = 0;
    } else shift += 7;
  }
  if (shift > 0) throw new RangeError("the last id is not complete");
  return ids;
}

/** Decodes the logprobs of a generation; returns none if it has none. */
export function readLogprobs({
  logprobs,
  logprobs64 = "",
}: Partial<Pick<WrittenGeneration, "logprobs" | "logprobs64">>): number[] {
  const { buffer } = new Uint8Array(Buffer.from(logprobs ?? logprobs64, "base64"));
  return [...(logprobs === undefined ? new Float64Array(buffer) : new Float32Array(buffer))];
}

function writeIds(ids: readonly number[]): string {
  const bytes = bufferFor(ids.length);
  let end = 0;
  for (const id of ids) {
    let rest = id;
    for (; rest > 127; rest >>>= 7) bytes[end++] = (rest & 127) | 128;
    bytes[end++] = rest;
  }
  return bytes.toString("base64", 0, end);
}

function toBase64(
  numbers: readonly number[],
  List: typeof Float32Array | typeof Float64Array,
): string {
  const bytes = bufferFor(numbers.length);
  new List(bytes.buffer, 0, numbers.length).set(numbers);
  return bytes.toString("base64", 0, numbers.length * List.BYTES_PER_ELEMENT);
}

/** Returns a buffer with eight bytes for each number, in memory of its own. */
function bufferFor(count: number): Buffer<ArrayBuffer> {
  return count > keptLength ? Buffer.allocUnsafeSlow(count * mostBytes) : keptBytes;
}

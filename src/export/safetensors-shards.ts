import { assertInvariant } from "../errors.ts";
import type { Sample } from "../trajectory/sample.ts";

/** The number of tokens in a shard. One token takes about 13 bytes. */
const defaultShardTokens = 4_000_000;

/** A file with the tensors of several rows. */
interface Shard {
  readonly bytes: Uint8Array;
  readonly rowCount: number;
  readonly tokenCount: number;
}

interface Tensor {
  readonly name: string;
  readonly dtype: "I32" | "U8" | "F32" | "I64" | "F64";
  readonly data: Uint8Array;
  readonly length: number;
}

/**
 * Yields rows as safetensors files: `token_ids` (I32), `loss_mask` (U8) and `logprobs` (F32) of all
 * rows in one sequence. Row `i` reaches from `row_offsets[i]` to `row_offsets[i + 1]` (I64). Each
 * row has an entry in `prompt_lengths` and `segments` (I32) and in `rewards` (F64, NaN if the row
 * is unscored). The header's metadata has the names of the rows. Keeps one shard in memory and
 * never splits a row.
 * **Source:** the format, huggingface/safetensors README.
 */
export async function* safetensorsShards(
  rows: AsyncIterable<Sample>,
  { shardTokens = defaultShardTokens }: { readonly shardTokens?: number } = {},
): AsyncGenerator<Shard> {
  let waiting: Sample[] = [];
  let tokenCount = 0;
  for await (const row of rows) {
    const length = row.tokenIds.length;
    if (waiting.length > 0 && tokenCount + length > shardTokens) {
      yield toShard(waiting, tokenCount);
      waiting = [];
      tokenCount = 0;
    }
    waiting.push(row);
    tokenCount += length;
  }
  if (waiting.length > 0) yield toShard(waiting, tokenCount);
}

function toShard(rows: readonly Sample[], tokenCount: number): Shard {
  const ids = new Int32Array(tokenCount);
  const mask = new Uint8Array(tokenCount);
  const logprobs = new Float32Array(tokenCount);
  const offsets = new BigInt64Array(rows.length + 1);
  let at = 0;
  for (const [index, row] of rows.entries()) {
    ids.set(row.tokenIds, at);
    mask.set(row.lossMask, at);
    logprobs.set(row.logprobs, at);
    at += row.tokenIds.length;
    offsets[index + 1] = BigInt(at);
  }
  // Tensors with eight-byte elements come first, so that each tensor is aligned.
  const tensors: readonly Tensor[] = [
    tensor("row_offsets", "I64", offsets),
    tensor(
      "rewards",
      "F64",
      Float64Array.from(rows, ({ reward }) => reward ?? Number.NaN),
    ),
    tensor("token_ids", "I32", ids),
    tensor("logprobs", "F32", logprobs),
    tensor(
      "prompt_lengths",
      "I32",
      Int32Array.from(rows, ({ promptLength }) => promptLength),
    ),
    tensor(
      "segments",
      "I32",
      Int32Array.from(rows, ({ segment }) => segment),
    ),
    tensor("loss_mask", "U8", mask),
  ];
  const names = {
    format: "turnwright-rows-1",
    rollout_ids: JSON.stringify(rows.map(({ rolloutId }) => rolloutId)),
    group_ids: JSON.stringify(rows.map(({ groupId }) => groupId)),
  };
  return { bytes: encode(tensors, names), rowCount: rows.length, tokenCount };
}

type Numbers = Int32Array | Uint8Array | Float32Array | BigInt64Array | Float64Array;

function tensor(name: string, dtype: Tensor["dtype"], numbers: Numbers): Tensor {
  const data = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
  return { name, dtype, data, length: numbers.length };
}

function encode(
  tensors: readonly Tensor[],
  metadata: Readonly<Record<string, string>>,
): Uint8Array {
  let end = 0;
  const entries = tensors.map(({ name, dtype, data, length }) => {
    const start = end;
    end += data.length;
    return [name, { dtype, shape: [length], data_offsets: [start, end] }] as const;
  });
  const json = JSON.stringify({ __metadata__: metadata, ...Object.fromEntries(entries) });
  const header = Buffer.from(json);
  // Spaces pad the header, so that the tensors start at a multiple of eight bytes.
  const headerLength = Math.ceil(header.length / 8) * 8;
  const bytes = Buffer.alloc(8 + headerLength + end, " ");
  bytes.writeBigUInt64LE(BigInt(headerLength), 0);
  header.copy(bytes, 8);
  let at = 8 + headerLength;
  for (const { data } of tensors) {
    bytes.set(data, at);
    at += data.length;
  }
  assertInvariant(at === bytes.length, "each tensor has its place in the file");
  return bytes;
}

import { UsageError } from "../../../errors.ts";
import { attendScratchBytes, SPAN_ENTRY_BYTES } from "../kernels/attend.ts";
import { BLOCK_POSITIONS, headPartBytes } from "../kernels/key-value-block.ts";
import type { KernelShape } from "../kernels/kernel-shape.ts";
import { padToPanel } from "../kernels/multiply.ts";
import { ROW_ENTRY_BYTES } from "../kernels/rotate.ts";
import { MAX_PAGES } from "../wasm/module-builder.ts";
import { PAGE_BYTES } from "../wasm/web-assembly.ts";
import type { DecoderShape } from "./decoder-shape.ts";

/**
 * A matrix in panels, and the bias that is added to each row's product. All addresses are in bytes.
 */
export interface LinearAddress {
  readonly weights: number;
  readonly bias: number;
  readonly inputSize: number;
  /** Number of outputs, rounded up to full panels. */
  readonly outputSize: number;
}

/** The addresses of a layer's weights. */
export interface LayerAddresses {
  readonly inputNorm: number;
  /** The weights of `q_proj`, `k_proj` and `v_proj`, one after the other. */
  readonly projection: LinearAddress;
  readonly queryNorm: number;
  readonly keyNorm: number;
  readonly attentionOutput: LinearAddress;
  readonly feedForwardNorm: number;
  /** The weights of `gate_proj` and `up_proj`, one after the other. */
  readonly gate: LinearAddress;
  readonly feedForwardOutput: LinearAddress;
}

/** The addresses of all weights. */
export interface WeightAddresses {
  /** Zeros, enough for the widest bias. */
  readonly zeros: number;
  /** One row of `hiddenSize` for each id, packed as the output layer is. */
  readonly embedding: LinearAddress;
  readonly layers: readonly LayerAddresses[];
  readonly finalNorm: number;
  /** The output layer: the embedding itself if it is tied. */
  readonly output: LinearAddress;
}

/** The addresses of a thread's working memory, and its capacities. */
export interface WorkAddresses {
  /** Maximum number of sequences. */
  readonly slotCount: number;
  /** Maximum number of tokens in one step. */
  readonly rowCount: number;
  /** Maximum number of rows of logits at once. */
  readonly logitRowCount: number;
  /** Maximum number of blocks in a sequence's table. */
  readonly tableLength: number;
  readonly blockCount: number;
  /** The first block's keys in the first layer's first head. */
  readonly blocks: number;
  /** Bytes between the parts that contain all blocks' keys or values of a head. */
  readonly partStride: number;
  readonly hidden: number;
  readonly normalized: number;
  readonly projected: number;
  readonly queries: number;
  readonly attended: number;
  readonly gated: number;
  readonly activated: number;
  readonly rowTable: number;
  readonly spans: number;
  readonly angles: number;
  readonly scratch: number;
  readonly logits: number;
  readonly exponentials: number;
}

/** The layout of the shared memory. JSON-able. */
interface MemoryPlan {
  readonly pages: number;
  readonly weights: WeightAddresses;
  /** One entry for each thread. */
  readonly threads: readonly WorkAddresses[];
  /**
   * Maximum length of prompt and output together, in tokens: the limit of the model or of the
   * cache.
   */
  readonly contextLength: number;
}

/** The capacities of an engine. */
interface EngineSize {
  readonly threadCount: number;
  /** Maximum number of sequences in each thread. */
  readonly slotCount: number;
  /** Maximum number of prompt tokens in one step, in each thread. */
  readonly prefillRowCount: number;
  /** Bytes for keys and values of all threads together. */
  readonly keyValueBytes: number;
}

const LOGIT_ROWS = 32;
const ALIGNMENT = 64;

/** Returns the sizes that kernels are built for. */
export function toKernelShape(shape: DecoderShape): KernelShape {
  const { hiddenSize, headSize, keyValueHeadCount, feedForwardSize, normEpsilon } = shape;
  const groupSize = shape.queryHeadCount / keyValueHeadCount;
  return { hiddenSize, headSize, keyValueHeadCount, groupSize, feedForwardSize, normEpsilon };
}

/** Returns the bytes of a block of positions: keys and values of all layers. */
export function blockBytesOf(shape: DecoderShape): number {
  return 2 * shape.layerCount * shape.keyValueHeadCount * headPartBytes(shape.headSize);
}

/** Assigns consecutive addresses. */
interface Allocator {
  readonly floats: (count: number) => number;
  readonly bytes: (count: number) => number;
  readonly end: number;
}

function createAllocator(): Allocator {
  // Address 0 stays unused.
  let end = ALIGNMENT;
  const bytes = (count: number): number => {
    const address = end;
    end = Math.ceil((end + count) / ALIGNMENT) * ALIGNMENT;
    return address;
  };
  return {
    bytes,
    floats: (count) => bytes(count * 4),
    get end() {
      return end;
    },
  };
}

/**
 * Assigns addresses to weights and working memory.
 *
 * @throws UsageError if weights and cache exceed the 4 GiB of 32-bit addresses, or if the cache is
 *   too small for a block.
 */
export function planMemory(shape: DecoderShape, size: EngineSize): MemoryPlan {
  const allocator = createAllocator();
  const weights = planWeights(shape, allocator);
  const blockBytes = blockBytesOf(shape);
  const blockCount = Math.floor(size.keyValueBytes / size.threadCount / blockBytes);
  const contextLength = Math.min(shape.contextLength, blockCount * BLOCK_POSITIONS);
  if (contextLength < BLOCK_POSITIONS) {
    throw new UsageError(
      `Cannot use ${size.keyValueBytes} as kvMemoryBytes: a block of ${BLOCK_POSITIONS} tokens ` +
        `takes ${blockBytes} bytes in each of ${size.threadCount} threads, expected more`,
    );
  }
  const work = { ...size, blockCount, contextLength };
  const threads = Array.from({ length: size.threadCount }, () =>
    planThread(shape, work, allocator),
  );
  const pages = Math.ceil(allocator.end / PAGE_BYTES);
  if (pages > MAX_PAGES) {
    throw new UsageError(
      `Cannot fit the model in memory: weights in single precision and cache take ` +
        `${Math.ceil(allocator.end / 2 ** 20)} MiB, expected at most 4096; lower kvMemoryBytes ` +
        `(${size.keyValueBytes}) or threads (${size.threadCount}), or use an inference server`,
    );
  }
  return { pages, weights, threads, contextLength };
}

function planWeights(shape: DecoderShape, allocator: Allocator): WeightAddresses {
  const { hiddenSize, headSize, queryHeadCount, keyValueHeadCount, feedForwardSize } = shape;
  const queriesSize = queryHeadCount * headSize;
  const projectionSize = padToPanel(queriesSize + 2 * keyValueHeadCount * headSize);
  const zeros = allocator.floats(
    Math.max(projectionSize, 2 * feedForwardSize, hiddenSize, padToPanel(shape.vocabularySize)),
  );
  const linear = (inputSize: number, outputSize: number, bias = zeros): LinearAddress => {
    const padded = padToPanel(outputSize);
    return { weights: allocator.floats(inputSize * padded), bias, inputSize, outputSize: padded };
  };
  const embedding = linear(hiddenSize, shape.vocabularySize);
  const layers = Array.from({ length: shape.layerCount }, () => ({
    inputNorm: allocator.floats(hiddenSize),
    projection: linear(hiddenSize, projectionSize, allocator.floats(projectionSize)),
    queryNorm: allocator.floats(headSize),
    keyNorm: allocator.floats(headSize),
    attentionOutput: linear(queriesSize, hiddenSize),
    feedForwardNorm: allocator.floats(hiddenSize),
    gate: linear(hiddenSize, 2 * feedForwardSize),
    feedForwardOutput: linear(feedForwardSize, hiddenSize),
  }));
  const finalNorm = allocator.floats(hiddenSize);
  const output = shape.tiesEmbedding ? embedding : linear(hiddenSize, shape.vocabularySize);
  return { zeros, embedding, layers, finalNorm, output };
}

function planThread(
  shape: DecoderShape,
  work: EngineSize & { blockCount: number; contextLength: number },
  { bytes, floats }: Allocator,
): WorkAddresses {
  const { slotCount, prefillRowCount, blockCount, contextLength } = work;
  const rowCount = slotCount + prefillRowCount;
  const { hiddenSize, headSize, queryHeadCount, keyValueHeadCount, feedForwardSize } = shape;
  const vocabularySize = padToPanel(shape.vocabularySize);
  const queriesSize = queryHeadCount * headSize;
  const tableLength = Math.ceil(contextLength / BLOCK_POSITIONS);
  return {
    slotCount,
    rowCount,
    logitRowCount: LOGIT_ROWS,
    tableLength,
    blockCount,
    partStride: blockCount * headPartBytes(headSize),
    hidden: floats(rowCount * hiddenSize),
    normalized: floats(rowCount * hiddenSize),
    projected: floats(rowCount * padToPanel(queriesSize + 2 * keyValueHeadCount * headSize)),
    queries: floats(rowCount * queriesSize),
    attended: floats(rowCount * queriesSize),
    gated: floats(rowCount * 2 * feedForwardSize),
    activated: floats(rowCount * feedForwardSize),
    rowTable: bytes(rowCount * ROW_ENTRY_BYTES),
    spans: bytes(rowCount * tableLength * SPAN_ENTRY_BYTES),
    angles: floats(contextLength * headSize),
    scratch: bytes(attendScratchBytes(toKernelShape(shape), contextLength)),
    logits: floats(LOGIT_ROWS * vocabularySize),
    exponentials: floats(vocabularySize),
    blocks: bytes(blockCount * blockBytesOf(shape)),
  };
}

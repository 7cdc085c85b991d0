import { rowBytesOf } from "../../../columns/column-specs.ts";
import { UsageError } from "../../../errors.ts";
import { attendScratchBytes, SPAN_ENTRY_BYTES } from "../kernels/attend.ts";
import { BLOCK_POSITIONS, headPartBytes } from "../kernels/key-value-block.ts";
import type { KernelShape } from "../kernels/kernel-shape.ts";
import { padToPanel } from "../kernels/multiply.ts";
import { ROW_ENTRY_BYTES } from "../kernels/rotate.ts";
import { MAX_PAGES } from "../wasm/module-builder.ts";
import { PAGE_BYTES } from "../wasm/web-assembly.ts";
import type { Allocator } from "./allocator.ts";
import { createAllocator } from "./allocator.ts";
import type { DecoderShape, MixtureShape } from "./decoder-shape.ts";
import { routeShapeOf } from "./decoder-shape.ts";
import type { WeightAddresses } from "./weight-plan.ts";
import { planWeights } from "./weight-plan.ts";

/** The addresses of a thread's working memory for layers with experts. */
export interface ExpertWorkAddresses {
  /** A row for each token, with a logit for each expert. */
  readonly routerLogits: number;
  /** The inputs of one expert, without gaps. */
  readonly gathered: number;
  readonly gated: number;
  readonly activated: number;
  /** The outputs of one expert. */
  readonly outputs: number;
  /** The sum of each token's experts. */
  readonly mixed: number;
  /** The address of the routes of the first block's positions. The routes of the next block follow. */
  readonly routes: number;
}

/** The addresses of a thread's working memory, and its capacities. */
export interface WorkAddresses {
  /** Maximum number of sequences. */
  readonly slotCount: number;
  /** Maximum number of tokens in one step. */
  readonly rowCount: number;
  /** Maximum number of rows of logits that are computed together. */
  readonly logitRowCount: number;
  /** Maximum number of blocks in a sequence's table. */
  readonly tableLength: number;
  readonly blockCount: number;
  /** The address of the first block's keys in the first layer's first head. */
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
  /** The working memory of experts. Absent if no layer has experts. */
  readonly experts?: ExpertWorkAddresses;
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
  /** Bytes for keys, values and routes of all threads together. */
  readonly keyValueBytes: number;
}

const LOGIT_ROWS = 32;

/** Returns the sizes that kernels are built for. */
export function toKernelShape(shape: DecoderShape): KernelShape {
  const { hiddenSize, headSize, keyValueHeadCount, feedForwardSize, normEpsilon } = shape;
  const groupSize = shape.queryHeadCount / keyValueHeadCount;
  const expertSize = shape.mixture?.expertSize;
  return {
    hiddenSize,
    headSize,
    keyValueHeadCount,
    groupSize,
    feedForwardSize,
    normEpsilon,
    ...(expertSize !== undefined && { expertSize }),
  };
}

/** Returns the bytes of a block of positions: keys, values and routes of all layers. */
export function blockBytesOf(shape: DecoderShape): number {
  return keyValueBytesOf(shape) + routeBytesOf(shape);
}

/** Returns the bytes of a block's keys and values. */
function keyValueBytesOf(shape: DecoderShape): number {
  return 2 * shape.layerCount * shape.keyValueHeadCount * headPartBytes(shape.headSize);
}

/** Returns the bytes of a block's routes: 0 if no layer has experts. */
function routeBytesOf(shape: DecoderShape): number {
  const routedExperts = routeShapeOf(shape);
  if (routedExperts === undefined) return 0;
  return BLOCK_POSITIONS * (rowBytesOf("routedExperts", { routedExperts }) ?? 0);
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

function planThread(
  shape: DecoderShape,
  work: EngineSize & { blockCount: number; contextLength: number },
  allocator: Allocator,
): WorkAddresses {
  const { bytes, floats } = allocator;
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
    blocks: bytes(blockCount * keyValueBytesOf(shape)),
    ...(shape.mixture !== undefined && {
      experts: {
        ...planExperts(shape.mixture, { rowCount, hiddenSize, allocator }),
        routes: bytes(blockCount * routeBytesOf(shape)),
      },
    }),
  };
}

function planExperts(
  { expertCount, expertSize }: MixtureShape,
  {
    rowCount,
    hiddenSize,
    allocator: { floats },
  }: { rowCount: number; hiddenSize: number; allocator: Allocator },
): Omit<ExpertWorkAddresses, "routes"> {
  return {
    routerLogits: floats(rowCount * padToPanel(expertCount)),
    gathered: floats(rowCount * hiddenSize),
    gated: floats(rowCount * 2 * expertSize),
    activated: floats(rowCount * expertSize),
    outputs: floats(rowCount * hiddenSize),
    mixed: floats(rowCount * hiddenSize),
  };
}

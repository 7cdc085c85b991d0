import { availableParallelism } from "node:os";
import { isDeepStrictEqual } from "node:util";
import { UsageError } from "../../errors.ts";
import { checkCount } from "../in-process/check-count.ts";
import { buildKernels } from "./kernels/build-kernels.ts";
import { loadWeights } from "./model/load-weights.ts";
import { planMemory, toKernelShape } from "./model/memory-plan.ts";
import type { ColumnLimits } from "../in-process/check-columns.ts";
import type { DecoderShape } from "./model/decoder-shape.ts";
import { routeShapeOf } from "./model/decoder-shape.ts";
import { readDecoderShape } from "./model/read-decoder-shape.ts";
import { readTensorDirectory } from "./model/tensor-directory.ts";
import type { ThreadSetup } from "./thread/serve-thread.ts";
import { startOnThisThread, startWorkerThread } from "./thread/start-thread.ts";
import type { ReloadableEngine } from "./threaded-engine.ts";
import { createThreadedEngine } from "./threaded-engine.ts";
import { compileModule, createSharedMemory } from "./wasm/web-assembly.ts";

/** Settings of `createReferenceEngine()`. */
export interface ReferenceEngineOptions {
  /** The model's folder in Hugging Face's layout. */
  readonly modelDir: string;
  /**
   * Number of worker threads. Default: one for each core. 0 computes on the calling thread, in
   * steps of some milliseconds, for tests and debuggers.
   */
  readonly threads?: number;
  /**
   * Maximum number of sequences that are computed at the same time, in all threads together. Further calls wait.
   * Default: 64 for each thread.
   */
  readonly maxBatch?: number;
  /**
   * Bytes for keys, values and routes, in all threads together. The machine allocates them when they
   * are first used. Default: 1 GiB.
   */
  readonly kvMemoryBytes?: number;
  /** The recorded policy version. Default `""`. */
  readonly policyVersion?: string;
}

const SEQUENCES_PER_THREAD = 64;
const PREFILL_ROWS = 128;
const KEY_VALUE_BYTES = 2 ** 30;

/**
 * Loads a small decoder of type Llama, Qwen2, Qwen3 or Qwen3-MoE and samples from it in this process,
 * without a server or GPU.
 *
 * Weights and arithmetic are in single precision. A token's logprob has the same bits with any
 * other calls at the same time, from cache or not, and in `score()`. With a seed, the ids depend
 * only on the seed, the session and the prompt.
 *
 * Logprobs are those of the softmax of logits divided by the temperature, before top-k, top-p and
 * min-p. At temperature 0 they are those at temperature 1. With the side column `keptTokens`, they are
 * over the kept ids only.
 *
 * The engine returns the side columns `keptTokens` and `topLogprobs`, and `routedExperts` of a model
 * with experts. Routes have the same bits with any other calls at the same time, and from cache.
 *
 * The model's own end ids (`eos_token_id`) end a turn as well as the request's stop ids.
 *
 * @throws UsageError naming folder, file, field and remedy if the model cannot be used.
 */
export async function createReferenceEngine({
  modelDir,
  threads = availableParallelism(),
  maxBatch = SEQUENCES_PER_THREAD * Math.max(1, threads),
  kvMemoryBytes = KEY_VALUE_BYTES,
  policyVersion,
}: ReferenceEngineOptions): Promise<ReloadableEngine> {
  checkCount("threads", threads, { min: 0, max: 256 });
  checkCount("maxBatch", maxBatch, { max: 65_536 });
  checkCount("kvMemoryBytes", kvMemoryBytes, { max: 2 ** 32 });
  const shape = await readDecoderShape(modelDir);
  const threadCount = Math.max(1, threads);
  const plan = planMemory(shape, {
    threadCount,
    slotCount: Math.ceil(maxBatch / threadCount),
    prefillRowCount: PREFILL_ROWS,
    keyValueBytes: kvMemoryBytes,
  });
  const memory = createSharedMemory(plan.pages);
  const { weights, contextLength } = plan;
  const columns = columnsOf(shape);
  const load = async (dir: string): Promise<void> =>
    await loadWeights(await readTensorDirectory(dir), { shape, weights, memory });
  await load(modelDir);
  let loadedDir = modelDir;
  const module = await compileModule(buildKernels(toKernelShape(shape)));
  const start = threads === 0 ? startOnThisThread : startWorkerThread;
  return createThreadedEngine({
    startThreads: plan.threads.map((work) => {
      const setup: ThreadSetup = { shape, weights, work, memory, module };
      return (listeners) => start(setup, listeners);
    }),
    description: {
      kind: "reference",
      model: modelDir,
      ...(policyVersion !== undefined && { policyVersion }),
      logprobConvention: "tempered",
      contextLength,
      columns: columns.names,
    },
    limits: { vocabularySize: shape.vocabularySize, contextLength, columns },
    async reload(dir) {
      const other = await readDecoderShape(dir);
      if (!isDeepStrictEqual(other, shape)) {
        throw new UsageError(
          `Cannot load the weights of ${dir}: its config.json describes another model than ${modelDir}`,
        );
      }
      try {
        await load(dir);
      } catch (error) {
        // A file may end early, after other tensors were already replaced.
        await load(loadedDir);
        throw error;
      }
      loadedDir = dir;
    },
  });
}

function columnsOf(shape: DecoderShape): ColumnLimits {
  const routedExperts = routeShapeOf(shape);
  if (routedExperts === undefined) return { names: ["keptTokens", "topLogprobs"] };
  return { names: ["routedExperts", "keptTokens", "topLogprobs"], routedExperts };
}

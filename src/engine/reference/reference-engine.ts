import { availableParallelism } from "node:os";
import { isDeepStrictEqual } from "node:util";
import { UsageError } from "../../errors.ts";
import { buildKernels } from "./kernels/build-kernels.ts";
import { loadWeights } from "./model/load-weights.ts";
import { planMemory, toKernelShape } from "./model/memory-plan.ts";
import { readDecoderShape } from "./model/read-decoder-shape.ts";
import { readTensorDirectory } from "./model/tensor-directory.ts";
import type { ThreadSetup } from "./thread/serve-thread.ts";
import { startOnThisThread, startWorkerThread } from "./thread/start-thread.ts";
import type { ReloadableEngine } from "./threaded-engine.ts";
import { createThreadedEngine } from "./threaded-engine.ts";
import { compileModule, createSharedMemory } from "./wasm/web-assembly.ts";

/** Settings of `createReferenceEngine()`. */
export interface ReferenceEngineOptions {
  /** The model's folder, as Hugging Face lays it out. */
  readonly modelDir: string;
  /**
   * Worker threads. Default: one for each core. 0 computes on the calling thread, a step of some
   * milliseconds between turns of its event loop: for tests and debuggers.
   */
  readonly threads?: number;
  /** Sequences computed at once, in all threads together; more wait. Default: 64 for each thread. */
  readonly maxBatch?: number;
  /**
   * Bytes for keys and values, in all threads together. The machine gives them as they are first
   * used. Default: 1 GiB.
   */
  readonly kvMemoryBytes?: number;
  /** What the policy's version is recorded as. Default `""`. */
  readonly policyVersion?: string;
}

const SEQUENCES_PER_THREAD = 64;
const PREFILL_ROWS = 128;
const KEY_VALUE_BYTES = 2 ** 30;

/**
 * Loads a small Llama-, Qwen2- or Qwen3-type decoder and samples from it in this process: no server,
 * no GPU. Weights and arithmetic are in single precision; a token's logprob has the same bits whatever
 * else is sampled at the same time, from cache or not, and in `score()`. With a seed the ids depend on
 * the seed, the session and the prompt alone. Logprobs are those of the softmax of logits divided by
 * the temperature, before top-k, top-p and min-p; greedy ones those at temperature 1.
 *
 * Besides the request's stop ids, the model's own (`eos_token_id`) end a turn.
 *
 * @throws UsageError naming folder, file, field and remedy where the model cannot be used.
 */
export async function createReferenceEngine({
  modelDir,
  threads = availableParallelism(),
  maxBatch = SEQUENCES_PER_THREAD * Math.max(1, threads),
  kvMemoryBytes = KEY_VALUE_BYTES,
  policyVersion,
}: ReferenceEngineOptions): Promise<ReloadableEngine> {
  checkCount("threads", threads, { least: 0, most: 256 });
  checkCount("maxBatch", maxBatch, { least: 1, most: 65_536 });
  checkCount("kvMemoryBytes", kvMemoryBytes, { least: 1, most: 2 ** 32 });
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
  const fill = async (dir: string): Promise<void> =>
    await loadWeights(await readTensorDirectory(dir), { shape, weights, memory });
  await fill(modelDir);
  let filledFrom = modelDir;
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
    },
    limits: { vocabularySize: shape.vocabularySize, contextLength },
    async reload(dir) {
      const other = await readDecoderShape(dir);
      if (!isDeepStrictEqual(other, shape)) {
        throw new UsageError(
          `Cannot load the weights of ${dir}: its config.json describes another model than ${modelDir}`,
        );
      }
      try {
        await fill(dir);
      } catch (error) {
        // A file may end too soon, when other tensors are in their places already.
        await fill(filledFrom);
        throw error;
      }
      filledFrom = dir;
    },
  });
}

function checkCount(
  name: string,
  value: number,
  { least, most }: { least: number; most: number },
): void {
  if (Number.isSafeInteger(value) && value >= least && value <= most) return;
  throw new UsageError(
    `Cannot use ${value} as ${name}: expected a whole number, ${least} to ${most}`,
  );
}

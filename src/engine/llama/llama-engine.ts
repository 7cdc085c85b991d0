import { open } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { describeError, UsageError } from "../../errors.ts";
import type { Llama, LlamaGpu, LlamaLibrary, LlamaModel } from "./llama-library.ts";
import { importLlamaLibrary, installCommand } from "./llama-library.ts";
import type { LlamaEngine } from "./sequence-engine.ts";
import { createSequenceEngine } from "./sequence-engine.ts";
import { createSequencePool } from "./sequence-pool.ts";

/** Settings of `createLlamaEngine()`. */
export interface LlamaEngineOptions {
  /**
   * A GGUF file, or `hf:owner/repo:file` (or `hf:owner/repo:quantization`), which node-llama-cpp
   * downloads once to its own folder, `.node-llama-cpp/models` in the home folder.
   */
  readonly file: string;
  /**
   * Threads that compute. Default: all cores but one. They wait for each other by spinning: more
   * threads than free cores make it slower by orders of magnitude.
   */
  readonly threads?: number;
  /** Positions of each sequence. Default: what the model was trained on, at most 8,192. */
  readonly contextLength?: number;
  /** Calls computed at once; more wait. Memory for keys and values is taken for each. Default 2. */
  readonly sequences?: number;
  /**
   * How keys and values are kept. `half` takes half the memory, and moves logprobs in the second or
   * third decimal place. Default `single`.
   */
  readonly cachePrecision?: "single" | "half";
  /** What computes. Default: the processor; Metal on Apple's own, where there is no other package. */
  readonly gpu?: LlamaGpu;
  /** What the policy's version is recorded as. Default `""`. */
  readonly policyVersion?: string;
  /** Cancels loading. */
  readonly signal?: AbortSignal;
  /** Where the library comes from. A parameter, so that tests need not have it. */
  readonly importLibrary?: () => Promise<LlamaLibrary>;
  /** Throws where nothing can be downloaded. A parameter, so that tests need no network. */
  readonly reachHub?: () => Promise<unknown>;
}

const MOST_DEFAULT_POSITIONS = 8_192;

/**
 * Loads a GGUF model by llama.cpp and samples from it in this process. Needs the optional package
 * node-llama-cpp, which is loaded here and nowhere else.
 *
 * Logprobs are those of the softmax of logits divided by the temperature, before top-k, top-p and
 * min-p; greedy ones those at temperature 1. With a seed, ids depend on the seed, the session and the
 * prompt, and, through the order of llama.cpp's sums, a little on what is computed at the same time.
 *
 * Besides the request's stop ids, the model's own end a turn.
 *
 * @throws UsageError saying what to install, or naming the file and what is wrong with it.
 */
export async function createLlamaEngine({
  file,
  threads = Math.max(1, availableParallelism() - 1),
  contextLength,
  sequences = 2,
  cachePrecision = "single",
  gpu = process.platform === "darwin" && process.arch === "arm64" ? "metal" : false,
  policyVersion,
  signal,
  importLibrary = () => importLlamaLibrary(),
  reachHub = fetchHub,
}: LlamaEngineOptions): Promise<LlamaEngine> {
  checkCount("threads", threads, 1024);
  checkCount("sequences", sequences, 256);
  if (contextLength !== undefined) checkCount("contextLength", contextLength, 2 ** 31 - 1);
  const isRemote = file.startsWith("hf:");
  if (!isRemote) await checkFile(file);
  const library = await importLibrary();
  const modelPath = isRemote ? await download(library, { file, reachHub }) : path.resolve(file);
  const llama = await start(library, { gpu, threads });
  try {
    const model = await load(llama, { modelPath, signal });
    const cacheType = cachePrecision === "single" ? "F32" : "F16";
    const positions = contextLength ?? Math.min(model.trainContextSize, MOST_DEFAULT_POSITIONS);
    const context = await createContext(model, {
      contextSize: positions,
      sequences,
      threads,
      flashAttention: gpu === false ? false : "auto",
      experimentalKvCacheKeyType: cacheType,
      experimentalKvCacheValueType: cacheType,
    });
    const { release } = llama.llamaCppRelease;
    return createSequenceEngine({
      sequences: createSequencePool(
        Array.from({ length: sequences }, () =>
          context.getSequence({ contextShift: { strategy: refuseToShift } }),
        ),
      ),
      description: {
        kind: "llama",
        model: file,
        ...(isRemote && { weightsFile: modelPath }),
        ...(policyVersion !== undefined && { policyVersion }),
        engineVersion: `node-llama-cpp ${await library.getModuleVersion()}, llama.cpp ${release}`,
        logprobConvention: "tempered",
        contextLength: context.contextSize,
      },
      limits: {
        vocabularySize: model.fileInfo.metadata.tokenizer.ggml.tokens.length,
        contextLength: context.contextSize,
      },
      endsGeneration: (id) => model.isEogToken(id),
      dispose: () => llama.dispose(),
    });
  } catch (error) {
    await llama.dispose();
    throw error;
  }
}

/** The library would go on with the beginning of a full context cut off. */
function refuseToShift(): never {
  throw new Error("the context is full");
}

function checkCount(name: string, value: number, most: number): void {
  if (Number.isSafeInteger(value) && value >= 1 && value <= most) return;
  throw new UsageError(`Cannot use ${value} as ${name}: expected a whole number, 1 to ${most}`);
}

async function checkFile(file: string): Promise<void> {
  const magic = Buffer.alloc(4);
  try {
    await using handle = await open(file);
    await handle.read(magic, 0, 4, 0);
  } catch (error) {
    throw new UsageError(
      `Cannot read the model ${file}: ${describeError(error)}, expected a GGUF file`,
      { cause: error },
    );
  }
  if (magic.toString("latin1") === "GGUF") return;
  throw new UsageError(`Cannot use the model ${file}: it does not begin as a GGUF file does`);
}

/** The library's download never gives up on a host that does not answer, so that is asked first. */
async function download(
  library: LlamaLibrary,
  { file, reachHub }: { file: string; reachHub: () => Promise<unknown> },
): Promise<string> {
  const name = toLibraryName(file);
  try {
    return await library.resolveModelFile(name, { cli: false, download: false });
  } catch {
    // Not downloaded before.
  }
  try {
    await reachHub();
    return await library.resolveModelFile(name, { cli: false, download: "auto" });
  } catch (error) {
    throw new UsageError(
      `Cannot get the model ${file}: ${describeError(error)}, expected it on huggingface.co or ` +
        "downloaded before; a GGUF file of your own can be named by its path",
      { cause: error },
    );
  }
}

/** Throws where Hugging Face, or what the library takes for it, does not answer in ten seconds. */
async function fetchHub(): Promise<void> {
  const signal = AbortSignal.timeout(10_000);
  const hub = process.env["HF_ENDPOINT"] ?? "https://huggingface.co";
  const response = await fetch(hub, { method: "HEAD", signal });
  await response.body?.cancel();
}

/** The library takes a quantization behind the colon, and a file behind a slash. */
function toLibraryName(file: string): string {
  const [, repository, name] = /^hf:([^:]+):(.+\.gguf)$/i.exec(file) ?? [];
  return repository === undefined ? file : `hf:${repository}/${name}`;
}

async function start(
  library: LlamaLibrary,
  { gpu, threads }: { gpu: LlamaGpu; threads: number },
): Promise<Llama> {
  try {
    return await library.getLlama({
      gpu,
      build: "never",
      skipDownload: true,
      progressLogs: false,
      logLevel: "error",
      maxThreads: threads,
    });
  } catch (error) {
    throw new UsageError(
      `Cannot start llama.cpp: ${describeError(error)}, expected its package for this machine: ` +
        installCommand(),
      { cause: error },
    );
  }
}

async function load(
  llama: Llama,
  { modelPath, signal }: { modelPath: string; signal: AbortSignal | undefined },
): Promise<LlamaModel> {
  try {
    return await llama.loadModel({
      modelPath,
      ...(signal !== undefined && { loadSignal: signal }),
    });
  } catch (error) {
    if (signal?.aborted) throw signal.reason;
    throw new UsageError(
      `Cannot load the model ${modelPath}: ${describeError(error)}, expected one that llama.cpp knows ` +
        "and that fits the memory",
      { cause: error },
    );
  }
}

async function createContext(
  model: LlamaModel,
  options: Parameters<LlamaModel["createContext"]>[0],
): ReturnType<LlamaModel["createContext"]> {
  try {
    return await model.createContext(options);
  } catch (error) {
    const { sequences, contextSize } = options;
    throw new UsageError(
      `Cannot make room for ${sequences} sequences of ${contextSize} tokens: ` +
        `${describeError(error)}, expected fewer or shorter ones, or half precision`,
      { cause: error },
    );
  }
}

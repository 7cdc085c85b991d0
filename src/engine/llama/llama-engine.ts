import { open } from "node:fs/promises";
import { availableParallelism } from "node:os";
import path from "node:path";
import { describeError, UsageError } from "../../errors.ts";
import { checkCount } from "../in-process/check-count.ts";
import type { Llama, LlamaGpu, LlamaLibrary, LlamaModel } from "./llama-library.ts";
import { importLlamaLibrary, installCommand } from "./llama-library.ts";
import type { LlamaEngine } from "./sequence-engine.ts";
import { createSequenceEngine } from "./sequence-engine.ts";
import { createSequencePool } from "./sequence-pool.ts";

/** Settings of `createLlamaEngine()`. */
export interface LlamaEngineOptions {
  /**
   * A GGUF file, or `hf:owner/repo:file` (or `hf:owner/repo:quantization`). node-llama-cpp downloads a file of a
   * repository once, to its own folder, `.node-llama-cpp/models` in the home folder.
   */
  readonly file: string;
  /**
   * Number of threads. Default: all cores but one. Threads wait for each other by spinning, so more
   * threads than free cores make sampling slower by orders of magnitude.
   */
  readonly threads?: number;
  /** The number of positions of each sequence. Default: the length that the model was trained on, at most 8,192. */
  readonly contextLength?: number;
  /**
   * Maximum number of calls that are computed at the same time. Further calls wait. Each call reserves memory for keys
   * and values. Default 2.
   */
  readonly sequences?: number;
  /**
   * Precision of keys and values in memory. `half` uses half the memory, and changes logprobs in
   * the second or third decimal place. Default `single`.
   */
  readonly cachePrecision?: "single" | "half";
  /**
   * The device. Default: the processor, and Metal on Apple silicon, because there is no other
   * package for it.
   */
  readonly gpu?: LlamaGpu;
  /** The recorded policy version. Default `""`. */
  readonly policyVersion?: string;
  /** Cancels loading. */
  readonly signal?: AbortSignal;
  /** Imports the library. Tests replace it. */
  readonly importLibrary?: () => Promise<LlamaLibrary>;
  /** Throws if the network cannot be reached. Tests replace it. */
  readonly reachHub?: () => Promise<unknown>;
}

const MAX_DEFAULT_POSITIONS = 8_192;

/**
 * Loads a GGUF model with llama.cpp and samples from it in this process. Needs the optional package
 * node-llama-cpp, which no other module loads.
 *
 * Logprobs are those of the softmax of logits divided by the temperature, before top-k, top-p and
 * min-p. At temperature 0 they are those at temperature 1. With a seed, ids depend on the seed, the
 * session and the prompt. They also depend a little on other calls at the same time, because
 * llama.cpp's order of summation changes.
 *
 * The model's own end ids end a turn as well as the request's stop ids.
 *
 * @throws UsageError saying what to install, or naming the file and its problem.
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
  checkCount("threads", threads, { max: 1024 });
  checkCount("sequences", sequences, { max: 256 });
  if (contextLength !== undefined) checkCount("contextLength", contextLength, { max: 2 ** 31 - 1 });
  const isRemote = file.startsWith("hf:");
  if (!isRemote) await checkFile(file);
  const library = await importLibrary();
  const modelPath = isRemote ? await download(library, { file, reachHub }) : path.resolve(file);
  const llama = await start(library, { gpu, threads });
  try {
    const model = await load(llama, { modelPath, signal });
    const cacheType = cachePrecision === "single" ? "F32" : "F16";
    const positions = contextLength ?? Math.min(model.trainContextSize, MAX_DEFAULT_POSITIONS);
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

/** Throws. The library calls this function for a full context, and would otherwise drop the context's start. */
function refuseToShift(): never {
  throw new Error("the context is full");
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
  throw new UsageError(`Cannot use the model ${file}: it does not start as a GGUF file does`);
}

/**
 * Downloads a model. The library retries an unreachable host forever, so the host is checked first.
 */
async function download(
  library: LlamaLibrary,
  { file, reachHub }: { file: string; reachHub: () => Promise<unknown> },
): Promise<string> {
  const name = toLibraryName(file);
  try {
    return await library.resolveModelFile(name, { cli: false, download: false });
  } catch {
    // The file is not in the library's folder yet.
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

/**
 * Throws if Hugging Face, or the endpoint that the library uses instead, does not answer within ten
 * seconds.
 */
async function fetchHub(): Promise<void> {
  const signal = AbortSignal.timeout(10_000);
  const hub = process.env["HF_ENDPOINT"] ?? "https://huggingface.co";
  const response = await fetch(hub, { method: "HEAD", signal });
  await response.body?.cancel();
}

/**
 * Converts a name to the library's form, which has a quantization after a colon and a file after a
 * slash.
 */
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

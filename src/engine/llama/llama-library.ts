import { UsageError, describeError } from "../../errors.ts";

/**
 * The part of node-llama-cpp that is used. The package is optional, so its types cannot be
 * imported.
 *
 * **Source:** withcatai/node-llama-cpp src/index.ts, release 3.22.
 */
export interface LlamaLibrary {
  getLlama(options: {
    readonly gpu: LlamaGpu;
    readonly build: "never";
    readonly skipDownload: true;
    readonly progressLogs: false;
    readonly logLevel: "error";
    readonly maxThreads: number;
  }): Promise<Llama>;
  /** Returns the path of a model's file. Downloads it first, unless `download` is false. */
  resolveModelFile(
    uri: string,
    options: { readonly cli: false; readonly download: "auto" | false },
  ): Promise<string>;
  getModuleVersion(): Promise<string>;
}

/** The device. False is the processor. */
export type LlamaGpu = false | "auto" | "cuda" | "metal" | "vulkan";

/** The loaded llama.cpp. */
export interface Llama {
  readonly llamaCppRelease: { readonly release: string };
  loadModel(options: {
    readonly modelPath: string;
    readonly loadSignal?: AbortSignal;
  }): Promise<LlamaModel>;
  dispose(): Promise<void>;
}

/** A loaded GGUF file. */
export interface LlamaModel {
  /** The number of positions that the model was trained on. */
  readonly trainContextSize: number;
  readonly fileInfo: {
    readonly metadata: {
      readonly tokenizer: { readonly ggml: { readonly tokens: readonly unknown[] } };
    };
  };
  /** True if the file lists the id as an end of generation. */
  isEogToken(id: number): boolean;
  createContext(options: LlamaContextOptions): Promise<LlamaContext>;
}

/** Settings of a context. The names of the two types are the library's. */
export interface LlamaContextOptions {
  /** The number of positions of each sequence. */
  readonly contextSize: number;
  readonly sequences: number;
  readonly threads: number;
  readonly flashAttention: false | "auto";
  readonly experimentalKvCacheKeyType: "F16" | "F32";
  readonly experimentalKvCacheValueType: "F16" | "F32";
}

/** Memory for several sequences, which are computed in common batches. */
export interface LlamaContext {
  readonly contextSize: number;
  getSequence(options: {
    readonly contextShift: { readonly strategy: () => never };
  }): LlamaSequence;
}

/** A list of ids, with their keys and values in memory. */
export interface LlamaSequence {
  /** The ids that the model has evaluated. */
  readonly contextTokens: readonly number[];
  /** The number of evaluated ids. */
  readonly nextTokenIndex: number;
  /** Drops all ids after the longest common prefix with `ids`. */
  adaptStateToTokens(ids: readonly number[], allowShift: false): Promise<void>;
  clearHistory(): Promise<void>;
  /**
   * Evaluates ids and appends them to the sequence. The result at an index describes the id after `ids[index]`;
   * `undefined` if `ids[index]` came without a query.
   */
  controlledEvaluate(ids: readonly EvaluatedId[]): Promise<readonly (EvaluatedNext | undefined)[]>;
}

/** An id to evaluate, alone or with a query about the id after it. */
export type EvaluatedId = number | readonly [number, { readonly generateNext: NextOptions }];

/** A query about the next id. */
export interface NextOptions {
  /** Draws an id. */
  readonly token?: true;
  readonly logits: {
    readonly filter: {
      readonly tokens?: readonly number[];
      readonly includeSelected?: true;
      /** Number of most likely ids to return logits of. */
      readonly includeTop: number;
    };
  };
  readonly totalLogitWeight: true;
  readonly options: {
    readonly temperature: number;
    readonly topK: 0;
    readonly topP: 1;
    readonly minP: 0;
    readonly seed: number;
  };
}

/** The result of a query about the next id. */
export interface EvaluatedNext {
  readonly next: {
    readonly token?: number | null;
    /** Logits divided by the temperature, the most likely first. */
    readonly logits?: ReadonlyMap<number, number>;
    /** Sum of `exp(logit - largest logit)` over the vocabulary. */
    readonly totalLogitWeight?: number;
  };
}

/** The release that this engine was tested with. Its platform packages have the same number. */
const RELEASE = "3.22.1";

/** The package with llama.cpp for each machine. */
const PLATFORM_PACKAGES: Readonly<Record<string, string>> = {
  "linux-x64": "linux-x64",
  "linux-arm64": "linux-arm64",
  "darwin-x64": "mac-x64",
  "darwin-arm64": "mac-arm64-metal",
  "win32-x64": "win-x64",
  "win32-arm64": "win-arm64",
};

/** Returns the command that installs the engine's packages on this machine, 85 MB. */
export function installCommand(platform: string = `${process.platform}-${process.arch}`): string {
  const own = PLATFORM_PACKAGES[platform];
  return own === undefined
    ? `npm i node-llama-cpp@${RELEASE}`
    : `npm i node-llama-cpp@${RELEASE} @node-llama-cpp/${own}@${RELEASE} --omit=optional`;
}

/**
 * Imports node-llama-cpp.
 *
 * @throws UsageError saying what to install if it does not load.
 */
export async function importLlamaLibrary(
  importModule: (name: string) => Promise<unknown> = (name) => import(name),
): Promise<LlamaLibrary> {
  try {
    return (await importModule("node-llama-cpp")) as LlamaLibrary;
  } catch (error) {
    throw new UsageError(
      `Cannot load the llama engine: the optional package node-llama-cpp does not load ` +
        `(${describeError(error).split("\n")[0]}), expected it to be installed: ${installCommand()}`,
      { cause: error },
    );
  }
}

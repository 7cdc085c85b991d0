import { UsageError, describeError } from "../../errors.ts";

/**
 * What of node-llama-cpp is used. The package is optional, so its own types are not there to import.
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
  /** The path of a model's file, downloaded first unless that is off. */
  resolveModelFile(
    uri: string,
    options: { readonly cli: false; readonly download: "auto" | false },
  ): Promise<string>;
  getModuleVersion(): Promise<string>;
}

/** What computes: the processor where false. */
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
  /** Positions that it was trained on. */
  readonly trainContextSize: number;
  readonly fileInfo: {
    readonly metadata: {
      readonly tokenizer: { readonly ggml: { readonly tokens: readonly unknown[] } };
    };
  };
  /** Whether the id ends a generation, as the file says it. */
  isEogToken(id: number): boolean;
  createContext(options: LlamaContextOptions): Promise<LlamaContext>;
}

/** How keys and values are kept. The names of the two types are the library's. */
export interface LlamaContextOptions {
  /** Positions of each sequence. */
  readonly contextSize: number;
  readonly sequences: number;
  readonly threads: number;
  readonly flashAttention: false | "auto";
  readonly experimentalKvCacheKeyType: "F16" | "F32";
  readonly experimentalKvCacheValueType: "F16" | "F32";
}

/** Room for some sequences, which are computed in common batches. */
export interface LlamaContext {
  readonly contextSize: number;
  getSequence(options: {
    readonly contextShift: { readonly strategy: () => never };
  }): LlamaSequence;
}

/** Ids with their keys and values. */
export interface LlamaSequence {
  /** The ids that are computed. */
  readonly contextTokens: readonly number[];
  /** How many they are. */
  readonly nextTokenIndex: number;
  /** Forgets everything from the first difference on. */
  adaptStateToTokens(ids: readonly number[], allowShift: false): Promise<void>;
  clearHistory(): Promise<void>;
  /** Computes ids behind those that are there; what is asked for at an id is at its index. */
  controlledEvaluate(ids: readonly EvaluatedId[]): Promise<readonly (EvaluatedNext | undefined)[]>;
}

/** An id to compute, and what to tell of the one behind it. */
export type EvaluatedId = number | readonly [number, { readonly generateNext: AskedNext }];

/** What to tell of the next id. */
export interface AskedNext {
  /** Draw one. */
  readonly token?: true;
  readonly logits: {
    readonly filter: {
      readonly tokens?: readonly number[];
      readonly includeSelected?: true;
      /** The logits of the so many most likely. */
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

/** What is told of the next id. */
export interface EvaluatedNext {
  readonly next: {
    readonly token?: number | null;
    /** Divided by the temperature; the most likely first. */
    readonly logits?: ReadonlyMap<number, number>;
    /** Sum of `exp(logit - largest logit)` over the vocabulary. */
    readonly totalLogitWeight?: number;
  };
}

/** The release that this engine was tested with; its platform packages have the same number. */
const RELEASE = "3.22.1";

/** Which package holds llama.cpp for a machine. */
const PLATFORM_PACKAGES: Readonly<Record<string, string>> = {
  "linux-x64": "linux-x64",
  "linux-arm64": "linux-arm64",
  "darwin-x64": "mac-x64",
  "darwin-arm64": "mac-arm64-metal",
  "win32-x64": "win-x64",
  "win32-arm64": "win-arm64",
};

/** The command that installs what the engine needs on this machine, 85 MB. */
export function installCommand(platform: string = `${process.platform}-${process.arch}`): string {
  const own = PLATFORM_PACKAGES[platform];
  return own === undefined
    ? `npm i node-llama-cpp@${RELEASE}`
    : `npm i node-llama-cpp@${RELEASE} @node-llama-cpp/${own}@${RELEASE} --omit=optional`;
}

/**
 * Imports node-llama-cpp.
 *
 * @throws UsageError saying what to install where it is not there.
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

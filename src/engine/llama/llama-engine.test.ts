import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { UsageError } from "../../errors.ts";
import { createLlamaEngine } from "./llama-engine.ts";
import type { Llama, LlamaContextOptions, LlamaLibrary, LlamaSequence } from "./llama-library.ts";
import { importLlamaLibrary, installCommand } from "./llama-library.ts";

let folder: string;
let file: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "turnwright-llama-"));
  file = path.join(folder, "model.gguf");
  await writeFile(file, "GGUF and more");
});
afterAll(() => rm(folder, { recursive: true }));

type StartOptions = Parameters<LlamaLibrary["getLlama"]>[0];

/** A library that loads nothing and records its calls. */
function fakeLibrary(changes: Partial<LlamaLibrary & Llama> = {}, trainContextSize = 32_768) {
  const calls: {
    start?: StartOptions;
    path?: string;
    context?: LlamaContextOptions;
    sequenceCount: number;
    isDisposed: boolean;
  } = { sequenceCount: 0, isDisposed: false };
  const llama: Llama = {
    llamaCppRelease: { release: "b1" },
    async loadModel({ modelPath }) {
      calls.path = modelPath;
      return {
        trainContextSize,
        fileInfo: { metadata: { tokenizer: { ggml: { tokens: ["a", "b"] } } } },
        isEogToken: () => false,
        async createContext(options) {
          calls.context = options;
          return {
            contextSize: options.contextSize,
            getSequence: () => {
              calls.sequenceCount++;
              return {} as LlamaSequence;
            },
          };
        },
      };
    },
    async dispose() {
      calls.isDisposed = true;
    },
    ...changes,
  };
  const library: LlamaLibrary = {
    async getLlama(options) {
      calls.start = options;
      return llama;
    },
    resolveModelFile: async (uri) => `/models/${uri}`,
    getModuleVersion: async () => "3.22.1",
    ...changes,
  };
  return { calls, importLibrary: async () => library };
}

function failing(message: string) {
  return () => Promise.reject(new Error(message));
}

describe("createLlamaEngine()", () => {
  test("starts with bounded threads, without building, and with memory for each sequence", async () => {
    const { calls, importLibrary } = fakeLibrary();
    const engine = await createLlamaEngine({
      file,
      threads: 3,
      sequences: 4,
      gpu: false,
      importLibrary,
    });
    expect(calls.start).toMatchObject({ gpu: false, maxThreads: 3, build: "never" });
    expect(calls.context).toEqual({
      contextSize: 8_192,
      sequences: 4,
      threads: 3,
      flashAttention: false,
      experimentalKvCacheKeyType: "F32",
      experimentalKvCacheValueType: "F32",
    });
    expect(calls.sequenceCount).toBe(4);
    expect(await engine.describe()).toEqual({
      kind: "llama",
      model: file,
      engineVersion: "node-llama-cpp 3.22.1, llama.cpp b1",
      logprobConvention: "tempered",
      contextLength: 8_192,
    });
    await engine.close();
    expect(calls.isDisposed).toBe(true);
  });

  test("uses no more positions than the model was trained on by default", async () => {
    const { calls, importLibrary } = fakeLibrary({}, 2_048);
    await createLlamaEngine({ file, cachePrecision: "half", importLibrary });
    expect(calls.context).toMatchObject({
      contextSize: 2_048,
      experimentalKvCacheKeyType: "F16",
    });
    await createLlamaEngine({ file, contextLength: 4_096, importLibrary });
    expect(calls.context).toMatchObject({ contextSize: 4_096 });
  });

  test.each([
    ["hf:owner/repo:model.Q8_0.gguf", "/models/hf:owner/repo/model.Q8_0.gguf"],
    ["hf:owner/repo:sub/model.gguf", "/models/hf:owner/repo/sub/model.gguf"],
    ["hf:owner/repo:Q4_K_M", "/models/hf:owner/repo:Q4_K_M"],
    ["hf:owner/repo/model.gguf", "/models/hf:owner/repo/model.gguf"],
  ])("passes %s to the library", async (name, resolved) => {
    const { calls, importLibrary } = fakeLibrary();
    const reachHub = failing("offline");
    const engine = await createLlamaEngine({ file: name, importLibrary, reachHub });
    expect(calls.path).toBe(resolved);
    expect(await engine.describe()).toMatchObject({ model: name, weightsFile: resolved });
  });

  test("downloads a file that is not cached, if there is a network", async () => {
    const downloads: unknown[] = [];
    const resolveModelFile: LlamaLibrary["resolveModelFile"] = async (uri, { download }) => {
      downloads.push(download);
      if (download === false) throw new Error("No model file found");
      return `/models/${uri}`;
    };
    const { calls, importLibrary } = fakeLibrary({ resolveModelFile });
    const remote = { file: "hf:owner/repo:model.gguf", importLibrary };
    await createLlamaEngine({ ...remote, reachHub: async () => downloads.push("reached") });
    expect(downloads).toEqual([false, "reached", "auto"]);
    expect(calls.path).toBe("/models/hf:owner/repo/model.gguf");
    await expectUsageError(
      createLlamaEngine({ ...remote, reachHub: failing("fetch failed") }),
      "Cannot get the model hf:owner/repo:model.gguf: fetch failed, expected it on huggingface.co " +
        "or downloaded before; a GGUF file of your own can be named by its path",
    );
    expect(downloads).toEqual([false, "reached", "auto", false]);
  });

  test("says what to install if the library does not load", async () => {
    const importLibrary = () => importLlamaLibrary(failing("Cannot find package\nImported from x"));
    await expectUsageError(
      createLlamaEngine({ file, importLibrary }),
      "Cannot load the llama engine: the optional package node-llama-cpp does not load (Cannot " +
        `find package), expected it to be installed: ${installCommand()}`,
    );
  });

  test("says what to install if the machine's package is missing", async () => {
    const { importLibrary } = fakeLibrary({ getLlama: failing("NoBinaryFound") });
    await expectUsageError(
      createLlamaEngine({ file, importLibrary }),
      "Cannot start llama.cpp: NoBinaryFound, expected its package for this machine: " +
        installCommand(),
    );
  });

  test("loads no library for a file that is missing or not a GGUF file", async () => {
    const importLibrary = failing("loaded");
    const missing = path.join(folder, "missing.gguf");
    await expectUsageError(createLlamaEngine({ file: missing, importLibrary }), missing);
    const other = path.join(folder, "model.safetensors");
    await writeFile(other, "{}");
    await expectUsageError(
      createLlamaEngine({ file: other, importLibrary }),
      `Cannot use the model ${other}: it does not start as a GGUF file does`,
    );
    await expectUsageError(createLlamaEngine({ file: folder, importLibrary }), folder);
  });

  test("frees the loaded parts if a later step fails", async () => {
    const unknown = fakeLibrary({ loadModel: failing("unknown model architecture: 'x'") });
    await expectUsageError(
      createLlamaEngine({ file, importLibrary: unknown.importLibrary }),
      `Cannot load the model ${file}: unknown model architecture: 'x'`,
    );
    expect(unknown.calls.isDisposed).toBe(true);
    const plain = await (await fakeLibrary().importLibrary()).getLlama({} as StartOptions);
    const large = fakeLibrary({
      loadModel: async (options) => ({
        ...(await plain.loadModel(options)),
        createContext: failing("too large"),
      }),
    });
    await expectUsageError(
      createLlamaEngine({ file, contextLength: 100_000, importLibrary: large.importLibrary }),
      "Cannot make room for 2 sequences of 100000 tokens: too large",
    );
    expect(large.calls.isDisposed).toBe(true);
  });

  test.each([{ threads: 0 }, { sequences: 1.5 }, { contextLength: -1 }])(
    "refuses %o",
    async (options) => {
      const { importLibrary } = fakeLibrary();
      const [name] = Object.keys(options);
      await expectUsageError(createLlamaEngine({ file, importLibrary, ...options }), name!);
    },
  );
});

test("`installCommand()` names one package if possible, of the library's own release", () => {
  expect(installCommand("linux-x64")).toBe(
    "npm i node-llama-cpp@3.22.1 @node-llama-cpp/linux-x64@3.22.1 --omit=optional",
  );
  expect(installCommand("darwin-arm64")).toContain("@node-llama-cpp/mac-arm64-metal@3.22.1");
  expect(installCommand("aix-ppc64")).toBe("npm i node-llama-cpp@3.22.1");
});

async function expectUsageError(call: Promise<unknown>, message: string): Promise<void> {
  const error: unknown = await call.catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UsageError);
  expect((error as UsageError).message).toContain(message);
}

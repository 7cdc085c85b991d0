import { UsageError, describeError } from "../errors.ts";
import type { TokenCodec } from "./codec.ts";
import { createNativeCodec } from "./native-codec.ts";
import { readTokenizerFile } from "./tokenizer-file.ts";

/**
 * Loads the tokenizer of a model folder.
 *
 * @throws UsageError where the folder or its tokenizer.json is missing or broken.
 */
export async function loadTokenCodec(modelDir: string): Promise<TokenCodec> {
  const file = await readTokenizerFile(modelDir);
  try {
    return await createNativeCodec(file);
  } catch (cause) {
    throw new UsageError(`Cannot load the tokenizer of ${modelDir}: ${describeError(cause)}`, { cause });
  }
}

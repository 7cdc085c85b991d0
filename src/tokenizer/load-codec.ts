import { createRequire } from "node:module";
import { UsageError, describeError } from "../errors.ts";
import type { TokenCodec } from "./codec.ts";
import { createJavascriptCodec } from "./javascript-codec.ts";
import { isAlikeInJavascript } from "./javascript-kinds.ts";
import type { NativeLibrary } from "./native-codec.ts";
import { isWellKnown } from "./well-known.ts";
import { createIsolatedCodec, createNativeCodec } from "./native-codec.ts";
import { readTokenizerFile } from "./tokenizer-file.ts";

/** How a tokenizer is loaded. */
export interface LoadTokenCodecOptions {
  /**
   * Which tokenizer library encodes. Default `auto`: the native one, and where its binary does not
   * load on this machine the one in JavaScript, at two to three times the cost, for the kinds of
   * tokenizers of which it gives the same ids (`isAlikeInJavascript()`); others are refused then.
   * `javascript` takes all that the library takes, and the ids of other kinds may differ.
   */
  readonly backend?: "auto" | "native" | "javascript";
  /** Imports the native library. Default: the package `tokenizers`. */
  readonly importNative?: () => Promise<object>;
}

/** As CommonJS, which it is: `import()` first reads through its text for what it exports. */
async function requireNative(): Promise<object> {
  return createRequire(import.meta.url)("tokenizers") as object;
}

/**
 * Loads the tokenizer of a model folder. A file whose patterns are not known from published models
 * runs in a process of its own, where one that runs wild does no harm.
 *
 * @throws UsageError where the folder or its tokenizer.json is missing or broken, or the native
 *   library does not load, which is asked for or needed.
 */
export async function loadTokenCodec(
  modelDir: string,
  { backend = "auto", importNative = requireNative }: LoadTokenCodecOptions = {},
): Promise<TokenCodec> {
  const { findModelFolder } = await import("../hub/find-model-folder.ts");
  const file = await readTokenizerFile(await findModelFolder(modelDir));
  if (backend === "javascript") return createJavascriptCodec(file);
  let library: NativeLibrary;
  try {
    library = (await importNative()) as NativeLibrary;
  } catch (cause) {
    if (backend === "auto") {
      if (isAlikeInJavascript(file)) return createJavascriptCodec(file);
      throw new UsageError(
        `Cannot load the tokenizer of ${modelDir} in JavaScript: its ids may be others than those of the native ` +
          `library, which does not load (${describeError(cause)}); expected that library, which \`npm install ` +
          "tokenizers` brings for most machines, or the backend `javascript` where other ids do no harm",
        { cause },
      );
    }
    throw new UsageError(
      `Cannot load the native tokenizer library: ${describeError(cause)}, ` +
        "expected a binary for this machine; the backend `javascript` needs none",
      { cause },
    );
  }
  try {
    return await (isWellKnown(file) ? createNativeCodec(library, file) : createIsolatedCodec(file));
  } catch (cause) {
    throw new UsageError(`Cannot load the tokenizer of ${modelDir}: ${describeError(cause)}`, {
      cause,
    });
  }
}

import { createRequire } from "node:module";
import { UsageError, describeError } from "../errors.ts";
import type { TokenCodec } from "./codec.ts";
import { createJavascriptCodec } from "./javascript-codec.ts";
import { isExactInJavascript } from "./javascript-kinds.ts";
import type { NativeLibrary } from "./native-codec.ts";
import { isWellKnown } from "./well-known.ts";
import { createIsolatedCodec, createNativeCodec } from "./native-codec.ts";
import { readTokenizerFile } from "./tokenizer-file.ts";

/** Settings of `loadTokenCodec()`. */
export interface LoadTokenCodecOptions {
  /**
   * The tokenizer library.
   *
   * - `auto` (default): the native library. If its binary does not load on this machine, the
   *   library in JavaScript, which takes two to three times as long, for kinds of tokenizers with
   *   the same ids (`isExactInJavascript()`). Other kinds are refused then.
   * - `native`: the native library only.
   * - `javascript`: the library in JavaScript for all kinds that it accepts. The ids of some kinds
   *   may differ.
   */
  readonly backend?: "auto" | "native" | "javascript";
  /** Imports the native library. Default: the package `tokenizers`. */
  readonly importNative?: () => Promise<object>;
}

/** Requires the library, which is CommonJS. `import()` would first scan its text for exports. */
async function requireNative(): Promise<object> {
  return createRequire(import.meta.url)("tokenizers") as object;
}

/**
 * Loads the tokenizer of a model folder. A file with patterns of no published model runs in its own
 * process, where an endless match cannot block this one.
 *
 * @throws UsageError if the folder or its tokenizer.json is missing or invalid, or if the native
 *   library is needed and does not load.
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
      if (isExactInJavascript(file)) return createJavascriptCodec(file);
      throw new UsageError(
        `Cannot load the tokenizer of ${modelDir} in JavaScript: its ids may differ from those of the native ` +
          `library, which does not load (${describeError(cause)}); expected that library, which \`npm install ` +
          "tokenizers` installs on most machines, or the backend `javascript` if other ids do no harm",
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

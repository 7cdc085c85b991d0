import type * as library from "tokenizers";
import { nativeElsewhere } from "./native-elsewhere.ts";
import type { RemoteTokenizer } from "./remote-tokenizer.ts";
import { loadSharedModel, type SharedModel } from "./shared-model.ts";
import type { TokenizerFile } from "./tokenizer-file.ts";
import { openThread } from "./tokenizer-port.ts";
import type { Instance } from "./tokenizer-server.ts";

/** The library with a file's whole model, which is loaded off the event loop when it is first asked. */
export class WholeLibrary {
  readonly #library: typeof library;
  readonly #file: TokenizerFile;
  readonly #elsewhere: RemoteTokenizer;
  #shared: Promise<SharedModel | undefined> | undefined;

  constructor(native: typeof library, file: TokenizerFile) {
    this.#library = native;
    this.#file = file;
    this.#elsewhere = nativeElsewhere(file, openThread);
  }

  /** @throws RolloutError `internal/tokenizer` where it fails. */
  async encode(instance: Instance, text: string): Promise<number[]> {
    const tokenizer = (await this.#load())?.[instance];
    if (tokenizer === undefined) return await this.#elsewhere.encode(instance, text);
    return (await tokenizer.encode(text, null, { addSpecialTokens: false })).getIds();
  }

  /** @throws RolloutError `internal/tokenizer` where it fails. */
  async decode(ids: readonly number[]): Promise<string> {
    const tokenizer = (await this.#load())?.full;
    return await (tokenizer?.decode([...ids], false) ?? this.#elsewhere.decode(ids));
  }

  async #load(): Promise<SharedModel | undefined> {
    this.#shared ??= loadSharedModel(this.#library, this.#file);
    return await this.#shared;
  }

  async close(): Promise<void> {
    await this.#elsewhere.close();
  }
}

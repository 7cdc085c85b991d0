import { readFile } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../../../src/errors.ts";
import { sha256Of } from "./bundle-manifest.ts";
import type { PythonModule } from "./python-module.ts";
import { readPythonModule } from "./python-module.ts";

/** A checkout of τ-bench that records the files that were read. */
export class TauCheckout {
  readonly directory: string;
  readonly #inputs = new Map<string, string>();

  constructor(directory: string) {
    this.directory = directory;
  }

  /** The SHA-256 of each file that was read, by path within the checkout, sorted. */
  get inputs(): Readonly<Record<string, string>> {
    return Object.fromEntries([...this.#inputs].sort(([left], [right]) => (left < right ? -1 : 1)));
  }

  /** The path of a file of the checkout, for messages. */
  place(file: string): string {
    return path.join(this.directory, file);
  }

  /**
   * Reads a file.
   *
   * @param file - Path within the checkout, with slashes.
   * @throws UsageError if it cannot be read.
   */
  async read(file: string): Promise<Buffer> {
    const content = await this.readIfPresent(file);
    if (content !== undefined) return content;
    throw new UsageError(
      `Cannot read ${this.place(file)}: no such file, expected a checkout of ` +
        "sierra-research/tau-bench in the folder",
    );
  }

  /** Same as `read()`, but `undefined` if the file does not exist. */
  async readIfPresent(file: string): Promise<Buffer | undefined> {
    let content: Buffer;
    try {
      content = await readFile(this.place(file));
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === "ENOENT" || code === "ENOTDIR") return undefined;
      throw new UsageError(`Cannot read ${this.place(file)}`, { cause: error });
    }
    this.#inputs.set(file, sha256Of(content));
    return content;
  }

  /**
   * Reads a Python module of the checkout.
   *
   * @throws UsageError if the file cannot be read or is not Python.
   */
  async readModule(file: string): Promise<PythonModule> {
    return readPythonModule((await this.read(file)).toString("utf8"), this.place(file));
  }
}

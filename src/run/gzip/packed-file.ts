import { gunzip } from "node:zlib";
import { UsageError } from "../../errors.ts";
import { type OpenFile, readBytes } from "../disk/files.ts";
import { type GzipIndex, readIndex } from "./gzip-index.ts";

/** A packed file that is open for reading. Positions and sizes are those of its content. */
export class PackedFile implements OpenFile {
  readonly #file: OpenFile;
  readonly #path: string;
  readonly #index: GzipIndex;
  /** The block that was read last. The next read often needs it again. */
  #last: { readonly block: number; readonly content: Promise<Buffer> } | undefined;

  private constructor(file: OpenFile, path: string, index: GzipIndex) {
    this.#file = file;
    this.#path = path;
    this.#index = index;
  }

  /**
   * Reads the index of a packed file, and takes over the open file.
   *
   * @param path - Names the file in errors.
   * @throws UsageError if the file does not end with an index.
   */
  static async open(file: OpenFile, path: string): Promise<PackedFile> {
    try {
      const index = await readIndex(file);
      if (index !== undefined) return new PackedFile(file, path, index);
    } catch (error) {
      await file.close();
      throw error;
    }
    await file.close();
    throw new UsageError(
      `Cannot read ${path}: it does not end with the index that \`turnwright pack\` writes, so it is cut or damaged, ` +
        "or another program wrote it; copy it again, or unpack it with gunzip and check the run with `turnwright verify`",
    );
  }

  /** Reads at most to the end of a block. */
  async read(into: Uint8Array, position: number): Promise<number> {
    const { size, blockSize } = this.#index;
    if (position >= size || into.length === 0) return 0;
    const block = Math.floor(position / blockSize);
    const content = await this.#contentOf(block);
    const start = position - block * blockSize;
    return content.copy(into, 0, start, Math.min(content.length, start + into.length));
  }

  async #contentOf(block: number): Promise<Buffer> {
    if (this.#last?.block !== block) this.#last = { block, content: this.#unpack(block) };
    return await this.#last.content;
  }

  async #unpack(block: number): Promise<Buffer> {
    const { size, blockSize, starts } = this.#index;
    const [start, end] = [starts[block]!, starts[block + 1]!];
    const first = block * blockSize;
    const length = Math.min(blockSize, size - first);
    const member = await readBytes(this.#file, { start, end });
    const content = await gunzipMember(member, length);
    if (content?.length === length) return content;
    throw new UsageError(
      `Cannot read ${this.#path}: bytes ${start} to ${end} are damaged, which hold bytes ${first} to ` +
        `${first + length} of the unpacked file; copy the file again`,
    );
  }

  async facts() {
    return { ...(await this.#file.facts()), size: this.#index.size };
  }

  async close(): Promise<void> {
    await this.#file.close();
  }

  write(): Promise<never> {
    return this.#refuse();
  }

  truncate(): Promise<never> {
    return this.#refuse();
  }

  sync(): Promise<never> {
    return this.#refuse();
  }

  #refuse(): Promise<never> {
    const error = new Error(`EBADF: ${this.#path} is open for reading only`);
    return Promise.reject(Object.assign(error, { code: "EBADF" }));
  }
}

/** Unpacks a gzip member; resolves to `undefined` if it is damaged, or longer than `length`. */
async function gunzipMember(member: Buffer, length: number): Promise<Buffer | undefined> {
  // One call of the thread pool gives the whole block.
  const options = { chunkSize: Math.max(length, 64), maxOutputLength: Math.max(length, 1) };
  return await new Promise((resolve) => {
    gunzip(member, options, (error, content) => resolve(error === null ? content : undefined));
  });
}

import path from "node:path";
import { rm } from "node:fs/promises";
import type { ColumnPart, ColumnParts } from "../../columns/column-part.ts";
import type { ColumnName } from "../../columns/column-specs.ts";
import type { ColumnStore } from "../../columns/column-store.ts";
import { hashInTurns } from "../../columns/hash-in-turns.ts";
import type { Clock } from "../../async/clock.ts";
import { WeightLimit } from "../../async/weight-limit.ts";
import { UsageError } from "../../errors.ts";
import { backOffMs } from "../../async/back-off.ts";
import { openColumnsIn, type ColumnFolder } from "../../run/columns/column-folder.ts";
import type { ColumnPlace } from "../../run/columns/column-index.ts";

/** Number of tries to find a part. A file server may show the files of another machine late. */
const looks = 6;

/** Maximum number of bytes that are read and not yet handed to the run's folder. A larger part is read alone. */
const mostReadBytes = 64 * 2 ** 20;

/**
 * The side columns that workers wrote. Copies those in a shared folder into the run's folder, and removes a shared file
 * once it is full and the run has all of its parts. Without a shared folder, workers write into the run's folder itself.
 */
export class TakenColumns implements AsyncDisposable {
  readonly #shared: ColumnFolder | undefined;
  readonly #clock: Pick<Clock, "sleep">;
  readonly #limit = new WeightLimit(mostReadBytes);
  /** The hashes of each shared file's parts that the run may not have yet. */
  readonly #open = new Map<string, Set<string>>();
  /** The number of each writer's last file, which still grows. */
  readonly #last = new Map<string, number>();
  /** The end of each file's last known part. Parts before it are ignored, because an index may be read twice. */
  readonly #ends = new Map<string, number>();

  /** @param dir - The shared folder with the run's side columns. */
  constructor(dir: string | undefined, clock: Pick<Clock, "sleep">) {
    this.#clock = clock;
    this.#shared = dir === undefined ? undefined : openColumnsIn(dir, { onPlace: this.#note });
  }

  readonly #note = ({ file, hash, at, size }: ColumnPlace): void => {
    if (at < (this.#ends.get(file) ?? 0)) return;
    this.#ends.set(file, at + size);
    const hashes = this.#open.get(file) ?? new Set();
    this.#open.set(file, hashes.add(hash));
    const { writer, number } = numberOf(file);
    this.#last.set(writer, Math.max(number, this.#last.get(writer) ?? 0));
  };

  /**
   * Hands the parts that a result names to the run's folder, which syncs them before it writes a line that names them.
   *
   * @returns a description of the first part that is missing or damaged. `undefined` if all parts are intact.
   * @throws UsageError if the disk of the run fails.
   */
  async take(columns: ColumnParts, store: ColumnStore): Promise<string | undefined> {
    for (const [name, parts] of Object.entries(columns) as [ColumnName, readonly ColumnPart[]][]) {
      for (const part of parts) {
        const fault = await this.#limit.run(part.size, async () => {
          return await this.#takePart(name, part, store);
        });
        if (fault !== undefined) return `its column ${name} is not complete: ${fault}`;
      }
    }
    return undefined;
  }

  async #takePart(
    name: ColumnName,
    part: ColumnPart,
    store: ColumnStore,
  ): Promise<string | undefined> {
    for (let round = 1; ; round++) {
      const bytes = await this.#read(part);
      if (typeof bytes !== "string") {
        await store.keep({ [name]: [{ ...part, bytes }] });
        return undefined;
      }
      // Workers on this machine write into the run's folder. So did an earlier start, if the shared file is gone.
      if ((await store.has?.(part.hash)) === true) return undefined;
      if (round === looks) return bytes;
      await this.#clock.sleep(backOffMs(round, { firstMs: 100 }));
    }
  }

  /** Reads a part from the shared folder. If that is not possible, returns the reason. */
  async #read(part: ColumnPart): Promise<Uint8Array | string> {
    if (this.#shared === undefined) return `no file in the run's folder has the part ${part.hash}`;
    let bytes: Uint8Array;
    try {
      bytes = await this.#shared.read(part);
    } catch (error) {
      if (error instanceof UsageError) return error.message;
      throw error;
    }
    const found = await hashInTurns(bytes);
    return found === part.hash
      ? bytes
      : `the bytes of the part ${part.hash} have the hash ${found}`;
  }

  /** Records that the run's folder has the parts, synced. Removes the shared files that are not needed any more. */
  async landed(columns: ColumnParts): Promise<void> {
    if (this.#shared === undefined) return;
    const hashes = Object.values(columns).flatMap((parts) => parts.map(({ hash }) => hash));
    for (const [file, open] of Array.from(this.#open)) {
      for (const hash of hashes) open.delete(hash);
      const { writer, number } = numberOf(file);
      if (open.size > 0 || number === this.#last.get(writer)) continue;
      this.#open.delete(file);
      await rm(path.join(this.#shared.dir, file), { force: true });
      await this.#shared.forget(file);
    }
  }

  /** Closes the files. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#shared?.[Symbol.asyncDispose]();
  }
}

/** Splits the name of a file into its writer and its number. */
function numberOf(file: string): { readonly writer: string; readonly number: number } {
  const [, writer = file, number = "0"] = /^(.*)-(\d+)\.bin$/.exec(file) ?? [];
  return { writer, number: Number(number) };
}

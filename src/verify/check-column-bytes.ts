import { isObject } from "../values/is-object.ts";
import { hashColumnBytes } from "../columns/column-part.ts";
import type { ColumnFolder } from "../run/columns/column-folder.ts";
import { UsageError } from "../errors.ts";
import type { RawRow, Violation } from "../trajectory/violation.ts";

/**
 * Reads the parts that rows name, and compares their bytes with their hashes. Rows that share a part read it once. Parts
 * that a service freed, because their rows were acknowledged, are not missing.
 */
export class ColumnBytes {
  readonly #source: Pick<ColumnFolder, "read" | "isFreed">;
  readonly #checked = new Map<string, string | undefined>();

  constructor(source: Pick<ColumnFolder, "read" | "isFreed">) {
    this.#source = source;
  }

  /** Returns the first fault of each column of a row. */
  async check({ columns }: RawRow): Promise<readonly Violation[]> {
    if (!isObject(columns)) return [];
    const found: Violation[] = [];
    for (const [name, parts] of Object.entries(columns)) {
      for (const part of Array.isArray(parts) ? (parts as unknown[]) : []) {
        const { hash, size } = isObject(part) ? part : {};
        if (typeof hash !== "string" || typeof size !== "number") continue;
        const fault = await this.#findFault(hash, size);
        if (fault === undefined) continue;
        found.push({ rule: "column-bytes", detail: `${name}: ${fault}` });
        break;
      }
    }
    return found;
  }

  async #findFault(hash: string, size: number): Promise<string | undefined> {
    const key = `${hash}:${size}`;
    if (!this.#checked.has(key)) this.#checked.set(key, await this.#read(hash, size));
    return this.#checked.get(key);
  }

  async #read(hash: string, size: number): Promise<string | undefined> {
    if (await this.#source.isFreed(hash)) return undefined;
    try {
      const bytes = await this.#source.read({ hash, size });
      const found = hashColumnBytes(bytes);
      if (found === hash) return undefined;
      return `the bytes of part ${hash} have the hash ${found}: they were changed after they were written`;
    } catch (error) {
      if (error instanceof UsageError) return error.message;
      throw error;
    }
  }
}

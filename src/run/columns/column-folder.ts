import path from "node:path";
import type { ColumnSource } from "../../columns/column-source.ts";
import { UsageError } from "../../errors.ts";
import { isObject } from "../../values/is-object.ts";
import { diskFiles, withFile } from "../disk/files.ts";
import { readJsonl } from "../disk/read-jsonl.ts";

/** The place of a part's bytes in a run's folder. */
interface ColumnPlace {
  /** The path of the file. */
  readonly file: string;
  readonly at: number;
  readonly size: number;
}

/**
 * Opens the side columns of a run's folder: `columns/*.jsonl` says in which file of `columns/` the part with a hash
 * lies. A folder without columns has no parts.
 *
 * @throws UsageError if a line is no place of a part.
 */
export async function openColumnFolder(dir: string): Promise<ColumnSource> {
  const folder = path.join(dir, "columns");
  const places = new Map<string, ColumnPlace>();
  const isThere = (await diskFiles.facts(folder)) !== undefined;
  for (const name of isThere ? await diskFiles.list(folder) : []) {
    if (!name.endsWith(".jsonl")) continue;
    for await (const line of readJsonl(path.join(folder, name))) {
      const [hash, place] = readPlace(line, folder, name);
      places.set(hash, place);
    }
  }
  return {
    read: async ({ hash, size }, { start, end } = { start: 0, end: size }) => {
      const place = places.get(hash);
      if (place?.size === size) return await readRange(place.file, place.at + start, end - start);
      throw new UsageError(
        `Cannot read the column part ${hash} of ${size} bytes: ${folder} has no such part; copy the folder again`,
      );
    },
  };
}

function readPlace(line: unknown, folder: string, name: string): readonly [string, ColumnPlace] {
  const { hash, file, at, size } = isObject(line) ? line : {};
  const isFile = typeof file === "string" && path.basename(file) === file;
  if (typeof hash !== "string" || !isFile || typeof at !== "number" || typeof size !== "number") {
    throw new UsageError(
      `Cannot read ${path.join(folder, name)}: a line is no place of a column part; copy the folder again`,
    );
  }
  return [hash, { file: path.join(folder, file), at, size }];
}

async function readRange(path: string, at: number, size: number): Promise<Uint8Array> {
  // Memory of its own, because lists of numbers view it.
  const bytes = new Uint8Array(size);
  let count = 0;
  await withFile(diskFiles, path, async (file) => {
    while (count < size) {
      const read = await file.read(bytes.subarray(count), at + count);
      if (read === 0) break;
      count += read;
    }
  });
  if (count === size) return bytes;
  throw new UsageError(
    `Cannot read ${path}: it ends before byte ${at + size}; copy the folder again`,
  );
}

import { createHash } from "node:crypto";
import { open, readdir, stat } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors.ts";

/**
 * Files up to this size are hashed completely. Of larger ones, such as weights, three parts are
 * hashed.
 */
const wholeBytes = 64 * 2 ** 20;

/** The number of bytes per read. A read costs as much as hashing some ten thousand bytes. */
const chunkBytes = 2 ** 20;

/** Returns the SHA-256 of a text in hexadecimal digits. */
export function hashOf(text: string): string {
  return createHash("sha256").update(text, "utf8").digest("hex");
}

/**
 * Returns a hash that identifies a file's content: the SHA-256 of its bytes or, above 64 MiB, of
 * its size and its first, middle and last 16 MiB. Returns `undefined` if the file does not exist.
 */
export async function fingerprintFile(file: string): Promise<string | undefined> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return undefined;
    throw error;
  });
  if (handle === undefined) return undefined;
  try {
    const { size } = await handle.stat();
    const hash = createHash("sha256");
    for (const [start, length] of stretchesOf(size)) {
      const end = start + length - 1;
      const options = { start, end, autoClose: false, highWaterMark: chunkBytes };
      const stream = handle.createReadStream(options);
      for await (const chunk of stream) hash.update(chunk as Buffer);
    }
    if (size > wholeBytes) hash.update(`size ${size}`);
    return hash.digest("hex");
  } finally {
    await handle.close();
  }
}

function stretchesOf(size: number): readonly (readonly [start: number, length: number])[] {
  if (size === 0) return [];
  if (size <= wholeBytes) return [[0, size]];
  const length = wholeBytes / 4;
  return [0, Math.floor((size - length) / 2), size - length].map((start) => [start, length]);
}

/**
 * Returns a hash of files and their names relative to a folder. The same content in another folder
 * has the same hash. Missing files are left out.
 * @throws UsageError if all files are missing, because all empty sets have the same hash.
 */
export async function fingerprintFiles(dir: string, names: readonly string[]): Promise<string> {
  const lines: string[] = [];
  for (const name of names.toSorted()) {
    const print = await fingerprintFile(path.join(dir, name));
    if (print !== undefined) lines.push(`${name} ${print}`);
  }
  if (lines.length > 0) return hashOf(lines.join("\n"));
  throw new UsageError(
    `Cannot tell what is in ${dir}: there is no ${names.join(", ") || "file"}, expected one at least`,
  );
}

/**
 * Lists the files in a subfolder by their paths relative to `dir`, with `/` as separator on every
 * system. Includes links to files, because the hub's cache consists of links.
 */
export async function listFiles(dir: string, below: string): Promise<readonly string[]> {
  const root = path.join(dir, below);
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const names: string[] = [];
  for (const entry of entries) {
    const file = path.join(entry.parentPath, entry.name);
    if (!entry.isFile() && !(entry.isSymbolicLink() && (await leadsToFile(file)))) continue;
    names.push(path.relative(dir, file).replaceAll(path.sep, "/"));
  }
  return names;
}

async function leadsToFile(link: string): Promise<boolean> {
  const found = await stat(link).catch(() => undefined);
  return found?.isFile() === true;
}

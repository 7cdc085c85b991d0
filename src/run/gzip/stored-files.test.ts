import { readdir, readFile } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Folders of code that reads runs and writes none. */
const readers = ["api", "export", "report", "verify", "viewer"];

/** Write or read an export's own files, not those of a run. */
const exceptions = new Set([
  "export/column-document.ts",
  "export/columns/column-sink.ts",
  "verify/exported/columns/arrays-reader.ts",
]);

test("code that reads runs opens their files by storedFiles, and so reads packed runs", async () => {
  const wrong: string[] = [];
  for (const folder of readers) {
    const dir = path.join(root, folder);
    for (const name of await readdir(dir, { recursive: true })) {
      if (!name.endsWith(".ts") || /\.(?:test|fixture)\.ts$/.test(name)) continue;
      const text = await readFile(path.join(dir, name), "utf8");
      const file = path.posix.join(folder, name);
      if (/\b(?:diskFiles|createReadStream)\b/.test(text) && !exceptions.has(file))
        wrong.push(file);
    }
  }
  expect(wrong).toEqual([]);
});

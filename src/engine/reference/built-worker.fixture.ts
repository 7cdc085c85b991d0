import { existsSync } from "node:fs";
import { readdir, stat } from "node:fs/promises";
import path from "node:path";
import { fileURLToPath } from "node:url";

/** The compiled module of worker threads. */
export const builtWorker = new URL(
  "../../../dist/src/engine/reference/thread/worker.js",
  import.meta.url,
);

/** True if worker threads can be tested: they run the compiled code, and an older build would be another engine. */
export const hasBuiltWorker = await isBuildFresh();
if (!hasBuiltWorker) console.log("Worker threads are not tested: run `npm run build` first");

async function isBuildFresh(): Promise<boolean> {
  if (!existsSync(builtWorker)) return false;
  const folders = [".", "../in-process", "../../columns"].map((folder) =>
    fileURLToPath(new URL(folder, import.meta.url)),
  );
  const listed = folders.map((folder) => readdir(folder, { recursive: true, withFileTypes: true }));
  const files = (await Promise.all(listed)).flat();
  const changes = files
    .filter(({ name }) => name.endsWith(".ts") && !/\.(test|fixture)\.ts$/.test(name))
    .map(async ({ parentPath, name }) => (await stat(path.join(parentPath, name))).mtimeMs);
  const builtAt = (await stat(new URL("../../../../.tsbuildinfo", builtWorker))).mtimeMs;
  return Math.max(...(await Promise.all(changes))) <= builtAt;
}

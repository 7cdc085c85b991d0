import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

/**
 * The folder of shared test data (τ-bench bundle, chat templates, recorded vectors), or `null` where
 * this machine has none; the reason for skipping is printed once per test file.
 */
export function sharedData(): string | null {
  const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
  const folder = process.env["TURNWRIGHT_SHARED"] ?? path.resolve(root, "../shared");
  if (existsSync(path.join(folder, "data"))) return folder;
  console.warn(`Skipping tests on shared data: ${folder}/data is absent (set TURNWRIGHT_SHARED)`);
  return null;
}

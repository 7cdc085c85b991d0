import { existsSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Returns the folder with test data that this repository must not contain (published chat templates, recordings
 * on τ-bench's data), or `null` if it is absent. Prints why tests are skipped, once per test file.
 */
export function sharedData(): string | null {
  const folder = process.env["TURNWRIGHT_SHARED"] ?? path.resolve(root, "../shared");
  if (existsSync(path.join(folder, "data"))) return folder;
  console.warn(`Skipping tests on shared data: ${folder}/data is absent (set TURNWRIGHT_SHARED)`);
  return null;
}

/**
 * Returns the folder of τ-bench's bundle, or `null` if it is absent. `turnwright env pull tau-bench --to
 * data/tau-bench` writes one; `TURNWRIGHT_TAU_BENCH` names another.
 */
export function tauBenchBundle(): string | null {
  const shared = process.env["TURNWRIGHT_SHARED"] ?? path.resolve(root, "../shared");
  const named = process.env["TURNWRIGHT_TAU_BENCH"];
  const places = [path.join(root, "data/tau-bench"), path.join(shared, "data/tau-bench")];
  const folder = [...(named === undefined ? [] : [named]), ...places].find((place) =>
    existsSync(path.join(place, "retail")),
  );
  if (folder !== undefined) return folder;
  console.warn(
    "Skipping tests on τ-bench's data: run `npm run turnwright -- env pull tau-bench --to data/tau-bench`",
  );
  return null;
}

import { createRequire } from "node:module";
import type * as undici from "undici";

/**
 * Loads the connection pool of the HTTP library alone, because loading the complete library costs a
 * process a tenth of a second of CPU. Falls back to the complete library if a release has moved the
 * file.
 *
 * @param load - Loads a module of a package. Default: `require()`.
 */
export function loadPool(
  load: (name: string) => unknown = createRequire(import.meta.url),
): typeof undici.Pool {
  let pool: unknown;
  try {
    pool = load("undici/lib/dispatcher/pool.js");
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (code !== "MODULE_NOT_FOUND" && code !== "ERR_PACKAGE_PATH_NOT_EXPORTED") throw error;
  }
  if (typeof pool === "function") return pool as typeof undici.Pool;
  return (load("undici") as typeof undici).Pool;
}

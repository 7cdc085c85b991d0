import { createRequire } from "node:module";
import type * as undici from "undici";

/**
 * The HTTP library's pool of connections by itself: the whole library, with all that `fetch()` needs, takes
 * a process a tenth of a second of CPU. Where a release keeps the pool elsewhere, it is the whole one's.
 *
 * @param load - Loads a module of a package. Default: as `require()` does.
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

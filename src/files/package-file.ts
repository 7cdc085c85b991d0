import { createRequire } from "node:module";
import path from "node:path";

/**
 * The path of a file of this package, named from the package's folder. Code is joined into other files
 * when it is built, so that a place relative to its own file says nothing.
 */
export function packageFile(name: string): string {
  const manifest = createRequire(import.meta.url).resolve("turnwright/package.json");
  return path.join(path.dirname(manifest), name);
}

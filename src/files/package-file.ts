import { createRequire } from "node:module";
import path from "node:path";

/**
 * Returns the path of a file of this package, given relative to the package's folder. The build bundles code into
 * other files, so paths relative to a source file would be wrong.
 */
export function packageFile(name: string): string {
  const manifest = createRequire(import.meta.url).resolve("turnwright/package.json");
  return path.join(path.dirname(manifest), name);
}

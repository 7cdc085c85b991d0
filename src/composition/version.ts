import { readFile } from "node:fs/promises";
import { packageFile } from "../files/package-file.ts";

/**
 * Reads this package's version from its manifest. Works both from the sources and from the build.
 */
export async function readVersion(): Promise<string> {
  return (JSON.parse(await readFile(packageFile("package.json"), "utf8")) as { version: string })
    .version;
}

import { readFile } from "node:fs/promises";
import { packageFile } from "../files/package-file.ts";

/** This package's version. Its own manifest is found from the sources and from the build alike. */
export async function readVersion(): Promise<string> {
  return (JSON.parse(await readFile(packageFile("package.json"), "utf8")) as { version: string })
    .version;
}

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";

/** This package's version. Its own manifest is found from the sources and from the build alike. */
export async function readVersion(): Promise<string> {
  const file = createRequire(import.meta.url).resolve("turnwright/package.json");
  return (JSON.parse(await readFile(file, "utf8")) as { version: string }).version;
}

import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";

/** The page's files, except its HTML. `scripts/build.mjs` creates them. */
export const pageFiles: readonly { readonly name: string; readonly type: string }[] = [
  { name: "viewer.js", type: "text/javascript; charset=utf-8" },
  { name: "viewer.css", type: "text/css; charset=utf-8" },
];

/**
 * Reads one of the page's files from the build. Works from every bundle that contains this module.
 */
export async function readPageFile(name: string): Promise<Buffer> {
  const manifest = createRequire(import.meta.url).resolve("turnwright/package.json");
  return await readFile(path.join(path.dirname(manifest), "dist/src/viewer/page", name));
}

/** Returns the HTML that loads the page's files. */
export function pageHtml(): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Turnwright</title>
<link rel="stylesheet" href="viewer.css">
<link rel="icon" href="data:,">
<script src="viewer.js" defer></script>
</head>
<body></body>
</html>
`;
}

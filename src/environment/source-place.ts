import path from "node:path";
import { packageFile } from "../internal/package-file.ts";

/** This package's own files: their place says nothing to whoever wrote an environment. */
let ownFolders: readonly string[] | undefined;

/** Where somebody else's code threw: a file's name and a line; `undefined` where the stack tells none. */
export function placeOfThrow(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return firstForeignPlace(error.stack ?? "");
}

/** Where somebody else's code called us. */
export function placeOfCaller(): string | undefined {
  return firstForeignPlace(new Error("caller").stack ?? "");
}

function firstForeignPlace(stack: string): string | undefined {
  for (const line of stack.split("\n")) {
    const match = /^\s+at .*?(?:\(|async |at )?((?:file:\/\/)?\/?[^()\s]+?):(\d+):\d+\)?$/.exec(
      line,
    );
    if (match === null) continue;
    const file = match[1]!.replace(/^file:\/\//, "");
    if (file.startsWith("node:") || file.includes("/node_modules/") || isOwn(file)) continue;
    return `${path.basename(file)}:${match[2]}`;
  }
  return undefined;
}

/** Tests stand beside what they test, and are foreign. */
function isOwn(file: string): boolean {
  ownFolders ??= ["src", "dist/src", "dist/chunks"].map((name) => packageFile(name) + path.sep);
  const isInside = ownFolders.some((folder) => file.startsWith(folder));
  return isInside && !/\.test\.[jt]s$/.test(file);
}

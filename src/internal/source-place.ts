import path from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "./package-file.ts";

/** This package's own files: their place says nothing to whoever wrote an environment. */
let ownFolders: readonly string[] | undefined;

/** Where somebody else's code threw: a file's name and a line; `undefined` where the stack tells none. */
export function placeOfThrow(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  return firstForeignPlace(error.stack ?? "");
}

/** Whether the stack of what was thrown has lines of this package's, and of nobody else's. */
export function isThrownByUs(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const stack = error.stack ?? "";
  return firstForeignPlace(stack) === undefined && filesOf(stack).some(({ file }) => isOwn(file));
}

/** Where somebody else's code called us. */
export function placeOfCaller(): string | undefined {
  return firstForeignPlace(new Error("caller").stack ?? "");
}

function firstForeignPlace(stack: string): string | undefined {
  for (const { file, line } of filesOf(stack)) {
    if (file.startsWith("node:") || file.includes("/node_modules/") || isOwn(file)) continue;
    return `${path.basename(file)}:${line}`;
  }
  return undefined;
}

/** The files and lines that a stack names, innermost first: of ES modules addresses, of others paths. */
function filesOf(stack: string): { readonly file: string; readonly line: string }[] {
  return stack.split("\n").flatMap((text) => {
    const match = /^\s+at (?:.*? \()?(?:async )?((?:\/|<|[a-z]+:).*?):(\d+):\d+\)?$/.exec(text);
    if (match === null) return [];
    return [{ file: toPath(match[1]!), line: match[2]! }];
  });
}

/** An address writes blanks, letters other than English ones and more in another way than a path. */
function toPath(place: string): string {
  return place.startsWith("file:") && URL.canParse(place) ? fileURLToPath(place) : place;
}

/** Tests stand beside what they test, and are foreign. */
function isOwn(file: string): boolean {
  ownFolders ??= ["src", "dist/src", "dist/chunks"].map((name) => packageFile(name) + path.sep);
  const isInside = ownFolders.some((folder) => file.startsWith(folder));
  return isInside && !/\.test\.[jt]s$/.test(file);
}

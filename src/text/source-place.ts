import path from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../files/package-file.ts";

/** Distinguishes a package's own stack places from foreign ones. */
export class SourcePlaces {
  readonly #fileOf: (name: string) => string;
  /** The package's own folders. An environment's author cannot use their places. */
  #ownFolders: readonly string[] | undefined;

  /** @param fileOf - Returns the path of a file of the package. */
  constructor(fileOf: (name: string) => string) {
    this.#fileOf = fileOf;
  }

  /** Returns the first foreign place, a file name and a line; `undefined` if all places are the package's own. */
  foreignPlace(stack: string): string | undefined {
    for (const { file, line } of filesOf(stack)) {
      if (file.startsWith("node:") || file.includes("/node_modules/") || this.#isOwn(file))
        continue;
      return `${path.basename(file)}:${line}`;
    }
    return undefined;
  }

  /** True if all places in the stack are the package's own, and there is at least one. */
  isOurs(stack: string): boolean {
    const isForeign = this.foreignPlace(stack) !== undefined;
    return !isForeign && filesOf(stack).some(({ file }) => this.#isOwn(file));
  }

  /** True for the package's own source file. Its tests count as foreign. */
  #isOwn(file: string): boolean {
    this.#ownFolders ??= ["src", "dist/src", "dist/chunks"].map(
      (name) => this.#fileOf(name) + path.sep,
    );
    const isInside = this.#ownFolders.some((folder) => file.startsWith(folder));
    return isInside && !/\.test\.[jt]s$/.test(file);
  }
}

const here = new SourcePlaces(packageFile);

/** Returns the file and line at which foreign code threw; `undefined` if the stack has none. */
export function placeOfThrow(error: unknown): string | undefined {
  return error instanceof Error ? here.foreignPlace(error.stack ?? "") : undefined;
}

/** Returns the first file and line of foreign code in a stack; `undefined` if it has none. */
export function placeOfStack(stack: string): string | undefined {
  return here.foreignPlace(stack);
}

/** True if the error's stack has lines of this package and no foreign lines. */
export function isThrownByUs(error: unknown): boolean {
  return error instanceof Error && here.isOurs(error.stack ?? "");
}

/** Returns the file and line at which foreign code called the package. */
export function placeOfCaller(): string | undefined {
  return here.foreignPlace(new Error("caller").stack ?? "");
}

/** The files and lines of a stack, innermost first: URLs for ES modules, paths for others. */
function filesOf(stack: string): { readonly file: string; readonly line: string }[] {
  return stack.split("\n").flatMap((text) => {
    const match = /^\s+at (?:.*? \()?(?:async )?((?:\/|<|[a-z]+:).*?):(\d+):\d+\)?$/.exec(text);
    if (match === null) return [];
    return [{ file: toPath(match[1]!), line: match[2]! }];
  });
}

/** Converts a file URL, which escapes spaces and many letters, to a path. */
function toPath(place: string): string {
  return place.startsWith("file:") && URL.canParse(place) ? fileURLToPath(place) : place;
}

import path from "node:path";
import { fileURLToPath } from "node:url";
import { packageFile } from "../files/package-file.ts";

/** Tells whose the places in a stack are, as seen from a package. */
export class SourcePlaces {
  readonly #fileOf: (name: string) => string;
  /** The package's own files: their place says nothing to whoever wrote an environment. */
  #ownFolders: readonly string[] | undefined;

  /** @param fileOf - The path of a file of the package. */
  constructor(fileOf: (name: string) => string) {
    this.#fileOf = fileOf;
  }

  /** The first place that is not the package's: a file's name and a line; `undefined` where there is none. */
  foreignPlace(stack: string): string | undefined {
    for (const { file, line } of filesOf(stack)) {
      if (file.startsWith("node:") || file.includes("/node_modules/") || this.#isOwn(file))
        continue;
      return `${path.basename(file)}:${line}`;
    }
    return undefined;
  }

  /** Whether lines of the package's are there, and nobody else's. */
  isOurs(stack: string): boolean {
    const isForeign = this.foreignPlace(stack) !== undefined;
    return !isForeign && filesOf(stack).some(({ file }) => this.#isOwn(file));
  }

  /** Tests stand beside what they test, and are foreign. */
  #isOwn(file: string): boolean {
    this.#ownFolders ??= ["src", "dist/src", "dist/chunks"].map(
      (name) => this.#fileOf(name) + path.sep,
    );
    const isInside = this.#ownFolders.some((folder) => file.startsWith(folder));
    return isInside && !/\.test\.[jt]s$/.test(file);
  }
}

const here = new SourcePlaces(packageFile);

/** Where somebody else's code threw: a file's name and a line; `undefined` where the stack tells none. */
export function placeOfThrow(error: unknown): string | undefined {
  return error instanceof Error ? here.foreignPlace(error.stack ?? "") : undefined;
}

/** Whether the stack of what was thrown has lines of this package's, and of nobody else's. */
export function isThrownByUs(error: unknown): boolean {
  return error instanceof Error && here.isOurs(error.stack ?? "");
}

/** Where somebody else's code called us. */
export function placeOfCaller(): string | undefined {
  return here.foreignPlace(new Error("caller").stack ?? "");
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

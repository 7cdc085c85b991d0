import { stat } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { UsageError } from "../errors.ts";

/**
 * Returns the absolute path of a file of the user. A relative path starts at the working directory.
 *
 * @param kind - The module's contents, for the message.
 * @throws UsageError if there is no such file.
 */
export async function findModule(kind: "agent" | "environment", file: string): Promise<string> {
  const absolute = path.resolve(file);
  const found = await stat(absolute).catch(() => undefined);
  if (found?.isFile() === true) return absolute;
  const what = found === undefined ? "absent" : "no file";
  throw new UsageError(
    `Cannot find ${kind} ${file}: ${absolute} is ${what}, expected a JavaScript module`,
  );
}

/** Imports a file of the user, in JavaScript or TypeScript. */
export async function importModule(absolute: string): Promise<unknown> {
  if (/\.[cm]?ts$/.test(absolute)) await enableTypeScript(absolute);
  return (await import(pathToFileURL(absolute).href)) as unknown;
}

/** Returns the end of a message about TypeScript that cannot be run, with the remedy. `undefined` for other errors. */
export function typeScriptFault(error: unknown): string | undefined {
  if ((error as NodeJS.ErrnoException).code !== "ERR_UNKNOWN_FILE_EXTENSION") return undefined;
  return (
    `Node ${process.versions.node} runs no TypeScript, expected Node 22.18 or newer, the package tsx ` +
    "(npm install --save-dev tsx), or the module that it compiles to"
  );
}

let isRegistered = false;

/**
 * Lets this process import TypeScript. Node.js does so itself from 22.18 on. For older Node.js, the package tsx of the
 * file's project is registered, if it has one.
 */
async function enableTypeScript(file: string): Promise<void> {
  const { typescript: isBuiltIn = false } = process.features as { readonly typescript?: unknown };
  if (isRegistered || isBuiltIn !== false) return;
  const tsx = findTsx(file);
  if (tsx === undefined) return;
  // Its import registers it.
  await import(pathToFileURL(tsx).href);
  isRegistered = true;
}

function findTsx(file: string): string | undefined {
  try {
    return createRequire(file).resolve("tsx/esm");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "MODULE_NOT_FOUND" || code === "ERR_PACKAGE_PATH_NOT_EXPORTED") return undefined;
    throw error;
  }
}

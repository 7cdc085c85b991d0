import { isObject } from "../../values/is-object.ts";
import path from "node:path";
import type { Environment } from "../../environment/environment.ts";
import { UsageError, describeError } from "../../errors.ts";
import { findModule, importModule, typeScriptFault } from "../../files/import-module.ts";
import type { User } from "../../user/user.ts";
import { assertMembers, environmentMembers, userMembers } from "./environment-members.ts";
import { findSyntaxError } from "./find-syntax-error.ts";

/**
 * Loads a module's environment: its default export, or the result of its `createEnvironment()`. A
 * relative path starts from the working directory.
 *
 * @throws UsageError naming the file, and the export or the member that is missing.
 */
export async function loadModuleEnvironment(file: string): Promise<Environment> {
  const exported = await importFile(file);
  const environment = await readEnvironment(file, exported);
  loaded.set(exported, environment);
  return environment;
}

/** The environment that each loaded module created last, by the module's exports. It may have a user. */
const loaded = new WeakMap<object, Environment & { readonly user?: User }>();

async function readEnvironment(file: string, exported: Exports): Promise<Environment> {
  // The default export may be a promise.
  const given: unknown = await exported["default"];
  if (exported["createEnvironment"] === undefined && isObject(given)) {
    assertMembers(given, environmentMembers, `${file}: its default export has`);
    return given as unknown as Environment;
  }
  const name = exported["createEnvironment"] === undefined ? "default" : "createEnvironment";
  if (exported[name] === undefined) {
    const names = Object.keys(exported);
    throw new UsageError(
      `Cannot use environment ${file}: it exports ${names.length === 0 ? "nothing" : names.join(", ")}, ` +
        "expected a default export that is an environment, or an export createEnvironment()",
    );
  }
  const environment = await call(file, exported, name);
  const what = name === "default" ? "its default export returns" : "createEnvironment() returns";
  assertMembers(environment, environmentMembers, `${file}: ${what}`);
  return environment as Environment;
}

/**
 * Returns the user from a module's `createUser()`, or else from its environment. `undefined` if
 * neither exists.
 * @throws UsageError as `loadModuleEnvironment()` does.
 */
export async function loadModuleUser(file: string): Promise<User | undefined> {
  const exported = await importFile(file);
  if (exported["createUser"] === undefined) {
    if (!loaded.has(exported)) await loadModuleEnvironment(file);
    return loaded.get(exported)?.user;
  }
  const user = await call(file, exported, "createUser");
  assertMembers(user, userMembers, `${file}: createUser() returns`);
  return user as User;
}

type Exports = Readonly<Record<string, unknown>>;

async function importFile(file: string): Promise<Exports> {
  const absolute = await findModule("environment", file);
  try {
    return (await importModule(absolute)) as Exports;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ERR_IMPORT_ATTRIBUTE_MISSING" || code === "ERR_IMPORT_ASSERTION_TYPE_MISSING") {
      throw new UsageError(
        `Cannot load environment ${file}: it is data, expected a JavaScript module`,
      );
    }
    const fault = typeScriptFault(error);
    if (fault !== undefined) throw new UsageError(`Cannot load environment ${file}: ${fault}`);
    const broken = isSyntaxError(error) ? await findSyntaxError(absolute) : undefined;
    if (broken === undefined) throw failure("load", file, error);
    const own = path.resolve(broken.file) === absolute ? file : path.relative("", broken.file);
    throw new UsageError(
      `Cannot load environment ${file}: ${own === file ? "" : `in ${own}, `}line ${broken.line}: ` +
        `${describeError(error)}${broken.code === "" ? "" : `, at: ${broken.code}`}`,
      { cause: error },
    );
  }
}

function isSyntaxError(error: unknown): boolean {
  return error instanceof Error && error.name === "SyntaxError";
}

async function call(
  file: string,
  exported: Exports,
  name: "createEnvironment" | "createUser" | "default",
): Promise<unknown> {
  const create = exported[name];
  if (typeof create !== "function") {
    throw new UsageError(`Cannot use environment ${file}: ${name} is not a function`);
  }
  try {
    return (await create()) as unknown;
  } catch (error) {
    throw failure("use", file, error);
  }
}

/** Wraps an error of the user's own code. Adds the line in the file if the stack has it. */
function failure(verb: "load" | "use", file: string, error: unknown): UsageError {
  const stack = error instanceof Error ? (error.stack ?? "") : "";
  const name = path.basename(file);
  const line = stack.slice(Math.max(0, stack.indexOf(`${name}:`)));
  const place = line.startsWith(`${name}:`) ? /:(\d+)/.exec(line)?.[1] : undefined;
  const where = place === undefined ? "" : `, line ${place}`;
  return new UsageError(`Cannot ${verb} environment ${file}${where}: ${describeError(error)}`, {
    cause: error,
  });
}

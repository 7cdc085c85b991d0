import { UsageError, describeError } from "../../errors.ts";
import { findModule, importModule, typeScriptFault } from "../../files/import-module.ts";
import type { ForeignAgent } from "./foreign-agent.ts";

/**
 * Loads a module that exports `run()`, by name or in its default export. A relative path starts at
 * the working directory.
 *
 * @throws UsageError if the module cannot be loaded or exports no such function.
 */
export async function loadAgent(file: string): Promise<ForeignAgent> {
  const exported = await importAgent(file, await findModule("agent", file));
  const agent = exported.run === undefined ? exported.default : exported;
  const run = typeof agent === "function" ? agent : (agent as { run?: unknown } | undefined)?.run;
  if (typeof run === "function") {
    return { run: async (given) => (await Reflect.apply(run, agent, [given])) as unknown };
  }
  const names = Object.keys(exported).join(", ") || "nothing";
  throw new UsageError(
    `Cannot use agent ${file}: it exports ${names}, expected ` +
      "`async run({ task, tools, baseUrl, apiKey, fetch, signal })`",
  );
}

interface Exported {
  readonly run?: unknown;
  readonly default?: unknown;
}

async function importAgent(file: string, absolute: string): Promise<Exported> {
  try {
    return (await importModule(absolute)) as Exported;
  } catch (error) {
    const fault = typeScriptFault(error);
    if (fault !== undefined) throw new UsageError(`Cannot load agent ${file}: ${fault}`);
    const remedy = error instanceof SyntaxError && !file.endsWith(".mjs") ? moduleRemedy : "";
    throw new UsageError(`Cannot load agent ${file}: ${describeError(error)}${remedy}`, {
      cause: error,
    });
  }
}

/** `npm init` writes a `package.json` under which a `.js` file is not a module. */
const moduleRemedy =
  '; if it is a module (`import`, `export`), name it .mjs or put "type": "module" into package.json';

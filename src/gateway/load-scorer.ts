import path from "node:path";
import { UsageError, describeError } from "../errors.ts";
import { importModule, typeScriptFault } from "../files/import-module.ts";
import type { SessionScorer } from "./gateway.ts";

/**
 * Loads a module that exports `score(session)`.
 *
 * @throws UsageError if the module cannot be loaded or exports no such function.
 */
export async function loadScorer(file: string): Promise<SessionScorer> {
  let module: { readonly score?: unknown; readonly default?: unknown };
  try {
    module = (await importModule(path.resolve(file))) as typeof module;
  } catch (error) {
    const why = typeScriptFault(error) ?? describeError(error);
    throw new UsageError(`Cannot load the scorer ${file}: ${why}`, { cause: error });
  }
  const score = module.score ?? module.default;
  if (typeof score === "function") return score as SessionScorer;
  throw new UsageError(
    `Cannot use the scorer ${file}: expected an export \`score(session)\` that returns {reward}`,
  );
}

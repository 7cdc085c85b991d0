import { stat } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors.ts";
import { createUser } from "../user/create-user.ts";
import { readScript } from "../user/read-script.ts";
import { readUserPrompts } from "../user/read-user-prompts.ts";
import type { UserPrompts } from "../user/user-prompts.ts";
import type { User } from "../user/user.ts";
import type { Variables } from "./create-engine.ts";
import { isTauName } from "./environment/environment-names.ts";
import { findBundle, loadOwnUser } from "./environment/environments.ts";
import type { EnvironmentConfig } from "./config/scope-config.ts";
import type { UserConfig } from "./config/user-config.ts";

/**
 * Creates the configured user, with the prompts of the environment's own benchmark.
 *
 * @throws UsageError if a script, prompts or a key cannot be read.
 */
export async function createRunUser(
  config: UserConfig,
  { environment, env }: { readonly environment: EnvironmentConfig; readonly env: Variables },
): Promise<User> {
  switch (config.strategy) {
    case "scripted": {
      // A script file overrides the environment's own user.
      const { strategy, scriptFile, isAssumed } = config;
      if (scriptFile !== undefined) {
        return createUser({ strategy, lines: await readScript(scriptFile) });
      }
      const own = await loadOwnUser(environment);
      if (own === undefined && isAssumed === true) {
        throw new UsageError(
          `Missing --user: ${environment.name} brings no user of its own, expected who the agent talks to, ` +
            "such as llm or scripted",
        );
      }
      return own ?? createUser({ strategy });
    }
    case "human":
      return createUser(config, { input: process.stdin, output: process.stderr });
    default: {
      const prompts = await findPrompts(environment);
      return createUser({ ...config, ...(prompts !== undefined && { prompts }) }, { env });
    }
  }
}

/**
 * Returns τ-bench's own prompts if its bundle is available. Otherwise this package's prompts are
 * used.
 */
async function findPrompts({ name, dataDir }: EnvironmentConfig): Promise<UserPrompts | undefined> {
  if (!isTauName(name)) return undefined;
  const dir = dataDir ?? (await findBundle());
  if (dir === undefined) return undefined;
  const file = path.join(dir, "user-simulator-prompts.json");
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) {
    throw new UsageError(`Cannot find ${file}: the bundle has no prompts for its user simulators`);
  }
  return await readUserPrompts(file);
}

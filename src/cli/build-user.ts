import { stat } from "node:fs/promises";
import path from "node:path";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import type { ChatPrices } from "../user/chat-budget.ts";
import { createUser, type CreateUserOptions } from "../user/create-user.ts";
import { readScript } from "../user/read-script.ts";
import { readUserPrompts } from "../user/read-user-prompts.ts";
import type { UserPrompts } from "../user/user-prompts.ts";
import type { User } from "../user/user.ts";
import { findBundle, loadOwnUser } from "./environments.ts";
import { numberOf, numberWithDefault, requiredText, textOf, type Settings } from "./option.ts";

/** The user that the settings name. */
export async function buildUser(settings: Settings, environment: Environment): Promise<User> {
  const strategy = requiredText(
    settings,
    "user",
    "who the agent talks to, such as llm or scripted",
  );
  if (strategy === "scripted") return await buildScriptedUser(settings);
  if (strategy === "human") {
    return createUser({ strategy }, { input: process.stdin, output: process.stderr });
  }
  const prompts = await findPrompts(settings, environment);
  const temperature = numberOf(settings, "user-temperature");
  const apiKeyEnv = textOf(settings, "user-api-key-env");
  const prices = readPrices(settings);
  return createUser({
    strategy,
    model: {
      baseUrl: requiredText(
        settings,
        "user-url",
        "the user model's endpoint, such as http://127.0.0.1:8000/v1",
      ),
      model: requiredText(settings, "user-model", "the name of the user model"),
      maxConcurrent: numberWithDefault(settings, "user-concurrency"),
      ...(apiKeyEnv === undefined ? {} : { apiKeyEnv }),
      ...(prices === undefined ? {} : { prices }),
    },
    ...(prompts === undefined ? {} : { prompts }),
    ...(temperature === undefined ? {} : { temperature }),
  } as CreateUserOptions);
}

/** A price that is not given beside the other is 0. */
function readPrices(settings: Settings): ChatPrices | undefined {
  const inputUsd = numberOf(settings, "user-input-price");
  const outputUsd = numberOf(settings, "user-output-price");
  if (inputUsd === undefined && outputUsd === undefined) return undefined;
  return { inputUsd: inputUsd ?? 0, outputUsd: outputUsd ?? 0 };
}

/** An environment may bring its own user; a script file goes before it. */
async function buildScriptedUser(settings: Settings): Promise<User> {
  const file = textOf(settings, "user-script");
  if (file !== undefined)
    return createUser({ strategy: "scripted", lines: await readScript(file) });
  const ownUser = await loadOwnUser(requiredText(settings, "env", "the environment to play"));
  return ownUser ?? createUser({ strategy: "scripted" });
}

/** τ-bench's own prompts, where its bundle is at hand; else our own words are used. */
async function findPrompts(
  settings: Settings,
  environment: Environment,
): Promise<UserPrompts | undefined> {
  if (!environment.name.startsWith("tau-")) return undefined;
  const dir = textOf(settings, "data") ?? (await findBundle());
  if (dir === undefined) return undefined;
  const file = path.join(dir, "user-simulator-prompts.json");
  const found = await stat(file).catch(() => undefined);
  if (found === undefined) {
    throw new UsageError(`Cannot find ${file}: the bundle has no prompts for its user simulators`);
  }
  return await readUserPrompts(file);
}

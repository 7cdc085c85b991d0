import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import { scriptedUser, defaultScript } from "../user/scripted-user.ts";
import type { User } from "../user/user.ts";
import { requiredText, type Settings } from "./option.ts";

/** The user that the settings name. */
export async function buildUser(settings: Settings, _environment: Environment): Promise<User> {
  const strategy = requiredText(settings, "user", "who the agent talks to, such as llm or scripted");
  if (strategy === "scripted") return scriptedUser({ lines: defaultScript });
  throw new UsageError(`Cannot use --user ${strategy}`);
}

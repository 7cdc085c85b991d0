import { createRunUser } from "../../../composition/create-run-user.ts";
import type { EnvironmentConfig } from "../../../composition/config/scope-config.ts";
import { createRunRedactor } from "../../../composition/run-secrets.ts";
import { loadEnvironment } from "../../../composition/environment/environments.ts";
import { probeUser } from "../../../composition/probe-chat.ts";
import type { Environment } from "../../../environment/environment.ts";
import { UsageError } from "../../../errors.ts";
import { plainStyle, terminalStyle } from "../../../report/text-style.ts";
import type { Task } from "../../../task.ts";
import { hideSecrets } from "../../write-out.ts";
import { openAgentTerminal } from "./agent-terminal.ts";
import { type MyChoices, readMyChoices } from "./my-settings.ts";
import { playAsMe } from "./play-as-me.ts";
import type { GivenSettings } from "../../../composition/config/setting.ts";

/**
 * Plays a task with the person at this process's terminal as the agent.
 *
 * @throws UsageError for an unknown task, and for settings of the user that cannot be used.
 */
export async function openMyConversation(
  config: EnvironmentConfig,
  given: GivenSettings,
): Promise<void> {
  const choices = readMyChoices(config.name, given);
  const { env } = process;
  const redactor = createRunRedactor({ engine: noEngine, user: choices.user }, env);
  hideSecrets(redactor);
  const environment = await loadEnvironment(config);
  const task = findTask(environment, choices);
  await probeUser(choices.user, { env });
  const user = await createRunUser(choices.user, { environment: config, env });
  const { stdin: input, stdout: output } = process;
  try {
    await playAsMe({
      environment,
      task,
      user,
      seed: choices.seed,
      style: output.isTTY ? terminalStyle : plainStyle,
      openTerminal: (words) => openAgentTerminal(words, { input, output }),
      print: (text) => void output.write(redactor.text(text)),
    });
  } finally {
    await user.close?.();
  }
}

/** A person needs no engine, so there is no key to hide. */
const noEngine = { kind: "reference", modelDir: "" } as const;

function findTask(environment: Environment, { split, taskIndex }: MyChoices): Task {
  const names = Object.keys(environment.splits);
  const chosen = split ?? (names.includes("test") ? "test" : names[0]);
  const size = chosen === undefined ? undefined : environment.splits[chosen];
  if (chosen === undefined || size === undefined) {
    throw new UsageError(
      `Cannot play split ${chosen ?? "test"} of ${environment.name}: expected one of ${names.join(", ")}`,
    );
  }
  if (taskIndex >= size) {
    throw new UsageError(
      `Cannot play task ${taskIndex} of ${environment.name}, ${chosen}: it has the tasks 0 to ${size - 1}`,
    );
  }
  return environment.task(chosen, taskIndex);
}

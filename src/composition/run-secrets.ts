import { secretsOfCommand } from "../secrets/find-secrets.ts";
import { hideEverywhere, Redactor } from "../secrets/redactor.ts";
import type { Variables } from "./create-engine.ts";
import type { RunConfig } from "./config/run-config.ts";

/**
 * Creates a redactor for a run's secrets: the keys of its engine and of its user's model, secrets
 * in their URLs, and texts that look like keys in the agent's command line.
 */
export function createRunRedactor(
  { engine, user, agent }: Pick<RunConfig, "engine"> & Partial<Pick<RunConfig, "user" | "agent">>,
  env: Variables,
): Redactor {
  const model = user !== undefined && "model" in user ? user.model : undefined;
  const urls = [...("urls" in engine ? engine.urls : []), ...(model ? [model.baseUrl] : [])];
  const variables = ["apiKeyEnv" in engine ? engine.apiKeyEnv : undefined, model?.apiKeyEnv];
  const redactor = new Redactor(
    variables.flatMap((name) => (name === undefined ? [] : (env[name] ?? []))),
  );
  if (agent !== undefined && "command" in agent) hideEverywhere(secretsOfCommand(agent.command));
  for (const url of urls) redactor.learnUrl(url);
  return redactor;
}

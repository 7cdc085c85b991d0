import { UsageError } from "../../errors.ts";
import type { AgentConfig } from "./agent-config.ts";
import { isForeignAgent } from "./agent-config.ts";
import { rendererSettings } from "./renderer-config.ts";
import type { GivenSettings, Setting } from "./setting.ts";

/** Settings of a run that need token ids, with the reason for each. */
const needIds: readonly (readonly [name: string, why: string])[] = [
  ...rendererSettings.map(
    ({ name }) => [name, "the server itself renders prompts and reads calls"] as const,
  ),
  ["execute-calls", "the server alone reports calls"],
  ["columns", "side columns belong to token ids"],
  ["format", "there are no training rows"],
  ["branch-at", "a branch begins with the token ids of another attempt"],
];

/**
 * Refuses settings that need token ids in a run with `--engine chat`.
 *
 * @param table - All settings of the run, with their defaults.
 * @throws UsageError
 */
export function requireChatSettings(
  values: GivenSettings,
  agent: AgentConfig,
  table: readonly Setting[],
): void {
  for (const [name, why] of needIds) {
    const value = values[name];
    const isGiven = Array.isArray(value) ? value.length > 0 : value !== undefined;
    if (!isGiven || value === table.find((setting) => setting.name === name)?.default) continue;
    const remedy = name === "model" ? "; --served-model names the model" : "";
    throw new UsageError(`Cannot use --${name} with --engine chat: ${why}${remedy}`);
  }
  if (values["tool-use"] === "one-in-template") {
    throw new UsageError(
      "Cannot use --tool-use one-in-template with --engine chat: the server has the chat template, expected one",
    );
  }
  if (isForeignAgent(agent)) {
    throw new UsageError(
      "Cannot play an agent of your own with --engine chat: the gateway that it calls records token ids, and the " +
        "server returns none; expected a built-in agent such as tool-calling",
    );
  }
}

/**
 * Refuses `--engine chat`, which returns no token ids.
 *
 * @param terms - `doing` is the action that needs ids, such as `play a rollout`.
 * @throws UsageError that names the reason and `remedy`.
 */
export function requireIds(
  { kind }: { readonly kind: string },
  {
    doing,
    why = "so there are no rows to train on",
    remedy = evalRemedy,
  }: { readonly doing: string; readonly why?: string; readonly remedy?: string },
): void {
  if (kind !== "chat") return;
  throw new UsageError(
    `Cannot ${doing} with the engine chat: its server returns messages without token ids, ${why}; ` +
      remedy,
  );
}

const evalRemedy =
  "measure the model with `turnwright eval`, or use an engine that returns ids, such as sglang or vllm";

/** The parameter of `requireIds()` for workers. */
export const workersNeedIds = {
  doing: "play with workers",
  why: "and workers hand over rows of ids",
  remedy:
    "play in one process, without --workers and --queue: waiting for a server costs it little",
} as const;

import { defaultLimits, type EpisodeLimits } from "../../episode/limits.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { count, seconds, type Setting, type SettingValues } from "./setting.ts";

/** The settings of an episode's limits. */
export const limitSettings = [
  {
    name: "max-turns",
    kind: count(1),
    value: "n",
    help: "policy calls per episode",
    default: defaultLimits.maxTurns,
  },
  {
    name: "max-tokens-per-turn",
    kind: count(1),
    value: "n",
    help: "tokens sampled in one turn",
    default: defaultLimits.maxTokensPerTurn,
  },
  {
    name: "max-episode-tokens",
    kind: count(1),
    value: "n",
    help: "tokens after the first prompt",
  },
  {
    name: "max-context",
    kind: count(1),
    value: "n",
    help: "tokens of prompt and output together (default: the engine's context length)",
  },
  {
    name: "max-format-errors",
    kind: count(1),
    value: "n",
    help: "turns with only malformed calls before the episode ends",
    default: defaultLimits.maxFormatErrors,
  },
  {
    name: "on-length",
    kind: { type: "choice", choices: ["end", "close-and-continue"] },
    help: "when a turn reaches its token limit: end the episode, or close the turn and continue",
    default: defaultLimits.onLength,
  },
  {
    name: "episode-timeout",
    kind: seconds,
    value: "s",
    help: "seconds for an episode",
    default: defaultLimits.episodeTimeoutMs / 1000,
    operational: true,
  },
  {
    name: "user-timeout",
    kind: seconds,
    value: "s",
    help: "seconds for one user reply, including waiting and retries",
    default: defaultLimits.userTimeoutMs / 1000,
    operational: true,
  },
  {
    name: "tool-timeout",
    kind: seconds,
    value: "s",
    help: "seconds for one tool call",
    default: defaultLimits.toolTimeoutMs / 1000,
    operational: true,
  },
  {
    name: "engine-timeout",
    kind: seconds,
    value: "s",
    help: "seconds for one turn, including retries",
    default: 1200,
    operational: true,
  },
] as const satisfies readonly Setting[];

/**
 * The limits of an episode. Without `maxContextTokens` the limit is the engine's context length.
 */
export type LimitsConfig = Omit<EpisodeLimits, "maxContextTokens"> &
  Partial<Pick<EpisodeLimits, "maxContextTokens">>;

/** Reads the limits of an episode. */
export function readLimitsConfig(
  values: SettingValues<(typeof limitSettings)[number]>,
): LimitsConfig {
  const { maxContextTokens: _byEngine, ...defaults } = defaultLimits;
  return {
    ...defaults,
    maxTurns: values["max-turns"],
    maxTokensPerTurn: values["max-tokens-per-turn"],
    maxEpisodeTokens: values["max-episode-tokens"] ?? Infinity,
    maxFormatErrors: values["max-format-errors"],
    episodeTimeoutMs: values["episode-timeout"] * 1000,
    // The engine's own limit ends earlier, because its error describes the tries.
    engineTimeoutMs: values["engine-timeout"] * 1000 + 60_000,
    userTimeoutMs: values["user-timeout"] * 1000,
    toolTimeoutMs: values["tool-timeout"] * 1000,
    onLength: values["on-length"],
    ...withoutUndefined({ maxContextTokens: values["max-context"] }),
  };
}

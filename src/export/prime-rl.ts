import { UsageError } from "../errors.ts";
import { namedGroupRules } from "./common-rules.ts";
import type { Exporter, ExportSurroundings, ReadyAttempt } from "./exporter.ts";

/**
 * The fields of a `TrainingSample`, a row a line, with what prime-rl's orchestrator knows of it beside
 * them. Advantages are those of plain GRPO: the reward less the group's mean, on the sampled tokens.
 *
 * **Source:** prime-rl 559b44772, src/prime_rl/transports/rollouts/types.py.
 */
export const primeRlExporter: Exporter = {
  trainer: "prime-rl, TrainingSample",
  layout: "lines",
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "`is_truncated`, next to the sample" },
    segments: { action: "keep", why: "a row each, all with the episode's advantage" },
  },
  toRecords(attempt, surroundings) {
    const temperature = temperatureOf(attempt, surroundings);
    return attempt.rows.map(({ tokenIds, lossMask, logprobs }) => ({
      sample: {
        token_ids: tokenIds,
        mask: lossMask.map((bit) => bit === 1),
        logprobs,
        temperatures: tokenIds.map(() => temperature),
        env_name: attempt.episode.environment,
        advantages: lossMask.map((bit) => (bit === 1 ? attempt.advantage : 0)),
      },
      id: attempt.rolloutId,
      group: attempt.groupId,
      reward: attempt.reward,
      is_truncated: attempt.episode.outcome === "truncated",
    }));
  },
};

function temperatureOf(
  { rolloutId }: ReadyAttempt,
  { temperature, temperatureRemedy = "`temperature`" }: ExportSurroundings,
): number {
  // It divides by it; logprobs of greedy sampling are those at 1.
  if (temperature !== undefined) return temperature === 0 ? 1 : temperature;
  throw new UsageError(
    `Cannot export ${rolloutId}: nothing says at which temperature it was sampled, and prime-rl reads one for ` +
      `each token; give it with ${temperatureRemedy}`,
  );
}

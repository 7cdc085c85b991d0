import { primeRlColumns } from "../columns/prime-rl-columns.ts";
import { UsageError } from "../../errors.ts";
import { namedGroupRules } from "./common-rules.ts";
import { lineageMember } from "./lineage-in.ts";
import { tokenAdvantages } from "./token-advantages.ts";
import type { Exporter, ExportSurroundings, ReadyAttempt } from "../exporter.ts";

/**
 * Exports the fields of a `TrainingSample`, one row a line, with the facts that prime-rl's
 * orchestrator adds. Advantages are those of plain GRPO: the reward minus the group's mean, on each
 * sampled token, or those of the turns if a discount is given.
 *
 * **Source:** prime-rl 559b44772, src/prime_rl/transports/rollouts/types.py.
 */
export const primeRlExporter: Exporter = {
  trainer: "prime-rl, TrainingSample",
  layout: "lines",
  columns: primeRlColumns,
  hasTurnAdvantages: true,
  rules: {
    ...namedGroupRules,
    truncated: { action: "keep", why: "`is_truncated`, beside the sample" },
    segments: { action: "keep", why: "each becomes a row, with the attempt's advantage" },
    turnRewards: {
      action: "drop",
      why: "an attempt has one advantage, unless a discount is given",
    },
  },
  toRecords(attempt, surroundings) {
    const temperature = temperatureOf(attempt, surroundings);
    return attempt.rows.map((row) => ({
      sample: {
        token_ids: row.tokenIds,
        mask: row.lossMask.map((bit) => bit === 1),
        logprobs: row.logprobs,
        temperatures: row.tokenIds.map(() => temperature),
        env_name: attempt.episode.environment,
        advantages: tokenAdvantages(row, attempt),
      },
      id: attempt.rolloutId,
      group: attempt.groupId,
      reward: attempt.reward,
      is_truncated: attempt.episode.outcome === "truncated",
      ...lineageMember(row),
    }));
  },
};

function temperatureOf(
  { rolloutId }: ReadyAttempt,
  { temperature, temperatureRemedy = "`temperature`" }: ExportSurroundings,
): number {
  // prime-rl divides by the temperature. Logprobs of greedy sampling are those at temperature 1.
  if (temperature !== undefined) return temperature === 0 ? 1 : temperature;
  throw new UsageError(
    `Cannot export ${rolloutId}: its temperature is not recorded, and prime-rl reads a temperature for ` +
      `each token; give it with ${temperatureRemedy}`,
  );
}

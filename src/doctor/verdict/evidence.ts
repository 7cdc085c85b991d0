import type { DifferenceFigures } from "../analysis/difference-figures.ts";
import type { RouteFigures } from "../analysis/compare-routes.ts";
import type { FoundTemperature } from "../analysis/fit-temperature.ts";
import type { Findings } from "../analysis/mismatch-tally.ts";
import type { TokenPairs } from "../analysis/group-figures.ts";
import type { Thresholds } from "../diagnosis.ts";
import type { InputProblem } from "../input/trainer-row.ts";

/** Facts about the run that decide how logprobs compare. */
export interface RunFacts {
  /** The temperature at which the engine sampled. Absent if it is unknown. */
  readonly temperature?: number;
  /** The probabilities that the engine reported. Absent if it is unknown. */
  readonly logprobConvention?: "tempered" | "raw" | "processed";
  /** True if top-k, top-p or min-p left out tokens. */
  readonly hasTruncation?: boolean;
  /** True if the run has the column `keptTokens`, so that its logprobs are over the kept set. */
  readonly hasKeptTokens?: boolean;
  /** True if the run has the column `routedExperts`. */
  readonly hasRoutes?: boolean;
}

/** Everything that a verdict is based on. */
export interface Evidence {
  readonly findings: Findings;
  readonly facts: RunFacts;
  readonly thresholds: Thresholds;
  /** The problems of the input that count as findings. */
  readonly problems: readonly InputProblem[];
  /** As the trainer's values stand. */
  readonly raw: TokenPairs;
  /** Shifts of rows taken back. */
  readonly aligned: TokenPairs;
  /** Shifts and a named temperature taken back. */
  readonly corrected: TokenPairs;
  readonly temperature: FoundTemperature | undefined;
  /** True if the factor of `temperature` counts as the cause of a difference. */
  readonly isTempered: boolean;
  readonly routes: RouteFigures | undefined;
  readonly all: DifferenceFigures;
}

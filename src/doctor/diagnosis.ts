import type { DifferenceFigures } from "./analysis/difference-figures.ts";
import type { RouteFigures } from "./analysis/compare-routes.ts";
import type { TemperatureFit } from "./analysis/fit-temperature.ts";
import type { Shift } from "./analysis/find-shift.ts";
import type { InputProblem } from "./input/trainer-row.ts";

/** The causes that the doctor names. */
export type CauseName =
  /** The trainer's values are those of the previous or the next token. */
  | "shifted"
  /** The trainer's values are right, but its mask is moved to the previous or the next tokens. */
  | "mask-shifted"
  /** The trainer did not use the experts that the engine used. */
  | "routes-not-replayed"
  /** The two sides divide their logits by different temperatures. */
  | "wrong-temperature"
  /**
   * The logprobs of one side are over the tokens that top-k, top-p or min-p kept, those of the other side over all
   * tokens.
   */
  | "other-token-set"
  /** Tokens of other policy versions differ more than tokens of the trainer's version. */
  | "stale-weights"
  /** Tokens of the trainer's version differ by more than rounding explains. */
  | "other-weights"
  /**
   * Tokens of the trainer's version differ by as much as rounding explains. A finding only if a threshold is exceeded.
   */
  | "numerics"
  /** Tokens differ, and their version or the trainer's is unknown. */
  | "unknown-lag"
  /** Rows or values are missing or wrong. */
  | "incomplete"
  /** Nothing could be compared. */
  | "nothing-compared";

/** A cause with its evidence. JSON-able. */
export interface Cause {
  readonly name: CauseName;
  /** The cause in plain words, with its figures. */
  readonly text: string;
  /**
   * The part of the mean absolute difference that the cause explains, in nats. 0 if the cause does not show in the
   * difference.
   */
  readonly strength: number;
  /** False if the figures are within the thresholds. */
  readonly isFinding: boolean;
}

/** A histogram of differences. JSON-able. */
export interface Histogram {
  /**
   * The edges of the bins in nats, one more than bins. The first and the last bin also contain all values outside the
   * edges.
   */
  readonly edges: readonly number[];
  readonly counts: readonly number[];
}

/** The result of an examination. JSON-able. */
export interface Diagnosis {
  /** `healthy`, or the name of the strongest cause. The name may be that of a cause that is no finding. */
  readonly verdict: "healthy" | CauseName;
  /** The verdict in plain words. */
  readonly text: string;
  /** True if a cause is a finding. */
  readonly hasFinding: boolean;
  /** All causes, findings first, and the strongest first. Empty if the pair is healthy. */
  readonly causes: readonly Cause[];
  /** Remarks that are no findings. */
  readonly notes: readonly string[];
  readonly counts: {
    /** Number of rows that both the run and the trainer's file have. */
    readonly rowCount: number;
    /** Number of trained tokens in these rows with a logprob on both sides. */
    readonly tokenCount: number;
    /** Number of trained tokens in these rows. */
    readonly trainedTokenCount: number;
  };
  /** Problems of the input, by kind. */
  readonly problems: readonly InputProblem[];
  /** Figures on all tokens, with the trainer's values unchanged. */
  readonly all?: DifferenceFigures;
  /** Figures after the shifts of rows and the temperature factor were corrected. Absent if neither was found. */
  readonly corrected?: DifferenceFigures;
  /** Figures by lag: the trainer's version minus the token's version, or `unknown`. After corrections. */
  readonly byLag: Readonly<Record<string, DifferenceFigures>>;
  /** Figures by the token's policy version. `""` is an unknown version. After corrections. */
  readonly byVersion: Readonly<Record<string, DifferenceFigures>>;
  /** Figures by the token's index in its row. After corrections. */
  readonly byPosition: Readonly<Record<string, DifferenceFigures>>;
  /** Figures by kind of token. After corrections. */
  readonly byKind: Readonly<Record<string, DifferenceFigures>>;
  /** Figures by the state of the previous token's routes: `equal` or `differing`. After corrections. */
  readonly byRoutes: Readonly<Record<string, DifferenceFigures>>;
  /** Correlation of both sides' logprobs, and mean absolute difference in nats, by shift. */
  readonly shifts: readonly {
    readonly shift: Shift;
    readonly tokenCount: number;
    readonly correlation?: number;
    readonly meanAbsolute?: number;
  }[];
  /** Number of rows by the shift that was found. Rows with the shift 0 are left out. */
  readonly shiftedRows: Readonly<Record<string, number>>;
  /** Number of rows by the shift of the mask that was found. Rows with the shift 0 are left out. */
  readonly maskShiftedRows: Readonly<Record<string, number>>;
  readonly routes?: RouteFigures;
  readonly temperature?: TemperatureFit;
  /** Histogram of differences, with the trainer's values unchanged. */
  readonly histogram: Histogram;
  readonly thresholds: Thresholds;
}

/** The borders between healthy values and findings. A value above its threshold is a finding, except for `roundedShare`. */
export interface Thresholds {
  /** Mean absolute difference of tokens of the trainer's version, in nats. */
  readonly meanDifference: number;
  /** Mean absolute difference of tokens of other versions, in nats. */
  readonly staleDifference: number;
  /**
   * Maximum difference that rounding the results to 16 bits explains, as a fraction of the mean absolute logprob.
   * Smaller differences are not attributed to a cause.
   */
  readonly roundedShare: number;
  /**
   * Maximum difference that 16-bit numerics explain, as a fraction of the mean absolute logprob. Applies to tokens that
   * the trainer's own version of the weights sampled. A larger difference is `other-weights`.
   */
  readonly numericsShare: number;
  /** Share of confident disagreements at the trainer's own version. */
  readonly confidentShare: number;
  /** Share of importance ratios below 0.5 or above 2, for tokens of the trainer's version. */
  readonly outsideShare: number;
  /** Share of token-layer pairs in which the two sides have different experts. */
  readonly routeShare: number;
  /** Share of rows that are shifted. */
  readonly shiftedShare: number;
}

/** The default thresholds. */
export const defaultThresholds: Thresholds = {
  meanDifference: 0.02,
  staleDifference: 0.05,
  roundedShare: 0.005,
  numericsShare: 0.2,
  confidentShare: 0.001,
  outsideShare: 0.01,
  routeShare: 0.001,
  shiftedShare: 0.01,
};

/** The trainer's own logprobs of one training row. */
export interface TrainerRow {
  readonly rolloutId: string;
  /** 0-based index of the row in its rollout. */
  readonly segment: number;
  /**
   * One entry for each token of the row: the logprob that the trainer gives `tokenIds[i]` after the ids before it. `NaN`
   * if the trainer gives no logprob, infinite if it gives a value that is not finite. Entries of tokens that are not trained are
   * read only to find shifts.
   */
  readonly logprobs: Float64Array;
  /** The version of the weights that scored the row. Absent if it is unknown. */
  readonly policyVersion?: string;
  /**
   * The experts that the trainer used, or a function that reads them when the row is compared. The function throws
   * UsageError for routes that cannot be read.
   */
  readonly routedExperts?: RouteTable | (() => Promise<RouteTable>);
}

/** The routes of the first tokens of a training row: one table row for each token. */
export interface RouteTable {
  /** Number of the training row's first tokens that have routes. */
  readonly rows: number;
  readonly layerCount: number;
  /** Number of experts that a token is routed to in a layer. */
  readonly perToken: number;
  /** The ids of the experts, [rows, layerCount, perToken]. */
  readonly ids: Uint8Array | Int8Array | Uint16Array | Int16Array | Int32Array;
}

/** The ways in which a file of trainer's logprobs can be wrong. */
export type InputProblemKind =
  /** A line that is not JSON. */
  | "not-json"
  /** A line without a required member, or with a member of another type. */
  | "shape"
  /** A line for a row that the run does not have. */
  | "unknown-row"
  /** A second line for the same row. The first line counts. */
  | "doubled-row"
  /** A line with more or fewer logprobs than the row has tokens. */
  | "wrong-length"
  /** A row of the run with trained tokens for which there is no line. */
  | "missing-row"
  /** Trained tokens without a value. */
  | "missing-value"
  /** Trained tokens with a value that is infinite or not a number. */
  | "not-finite"
  /** Trained tokens with a value above 0, which no logprob has. */
  | "above-zero"
  /** Routes that cannot be read, or that have another shape than the run's. */
  | "bad-routes"
  /** Tokens that need routes and have none, in a file with routes. */
  | "missing-routes";

/** One kind of problem of the input. JSON-able. */
export interface InputProblem {
  readonly kind: InputProblemKind;
  /** Number of lines or rows. */
  readonly rowCount: number;
  /** Number of tokens, for problems of single values. */
  readonly tokenCount?: number;
  /** The first ones. */
  readonly examples: readonly string[];
}

/** Logits of one token: of the id that follows it. Valid only while it is handed over. */
export interface LogitRow {
  /** One for each id of the vocabulary. */
  readonly logits: Float32Array;
  /**
   * The softmax of the logits divided by a temperature above 0: `exponentials[id] / sum` is the
   * probability of an id, and `-logit difference / temperature - log(sum)` its logarithm.
   */
  soften(temperature: number): SoftenedRow;
}

/** A softmax before its division. The array is overwritten by the next one. */
interface SoftenedRow {
  readonly exponentials: Float32Array;
  readonly sum: number;
  /** The largest logit, whose exponential is 1. */
  readonly largest: number;
}

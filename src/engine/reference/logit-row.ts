/** The logits of the id after one token. Valid only during the call that receives them. */
export interface LogitRow {
  /** One logit for each id of the vocabulary. */
  readonly logits: Float32Array;
  /**
   * Computes the softmax of the logits divided by a temperature above 0. The probability of an id
   * is `exponentials[id] / sum`, and its logarithm is `(logits[id] - largest) / temperature -
   * log(sum)`.
   */
  softmax(temperature: number): SoftmaxRow;
}

/** A softmax before its division. The next call overwrites the array. */
export interface SoftmaxRow {
  readonly exponentials: Float32Array;
  readonly sum: number;
  /** The largest logit. Its exponential is 1. */
  readonly largest: number;
}

/** The sizes that kernels are built for, in floats: multiples of 8, and 16 for `hiddenSize`. */
export interface KernelShape {
  readonly hiddenSize: number;
  readonly headSize: number;
  readonly keyValueHeadCount: number;
  /** Number of query heads that share a head of keys and values. */
  readonly groupSize: number;
  readonly feedForwardSize: number;
  /** The feed-forward size of an expert. Absent if no layer has experts. */
  readonly expertSize?: number;
  readonly normEpsilon: number;
}

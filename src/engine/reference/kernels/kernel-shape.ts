/** What kernels are assembled for. All sizes count floats and are multiples of 8. */
export interface KernelShape {
  readonly hiddenSize: number;
  readonly headSize: number;
  readonly keyValueHeadCount: number;
  /** Heads of queries that share a head of keys and values. */
  readonly groupSize: number;
  readonly feedForwardSize: number;
  readonly normEpsilon: number;
}

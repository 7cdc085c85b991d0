/** What kernels are assembled for. Sizes count floats: multiples of 8, `hiddenSize` one of 16. */
export interface KernelShape {
  readonly hiddenSize: number;
  readonly headSize: number;
  readonly keyValueHeadCount: number;
  /** Heads of queries that share a head of keys and values. */
  readonly groupSize: number;
  readonly feedForwardSize: number;
  readonly normEpsilon: number;
}

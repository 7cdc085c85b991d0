/** A release of SGLang whose behaviour a test server can have. */
export type SglangRelease = "0.5.15" | "0.5.23";

/** In what releases differ, as far as clients meet it. */
export interface ReleaseTraits {
  /** Whether replies say which version of the weights sampled which tokens. */
  readonly reportsVersionSpans: boolean;
  /** Whether a budget of 0 samples nothing; otherwise it samples one token. */
  readonly samplesNothing: boolean;
  /**
   * Whether sampling parameters are held against a list of names and types, so that others are refused
   * with HTTP 400. Otherwise an unknown name is a crash.
   */
  readonly checksParameters: boolean;
  /** Where the load is told. `/get_load` went when `/v1/loads` had taken its place. */
  readonly loadPaths: readonly string[];
}

/** 0.5.15: as its sources say. 0.5.23: as recorded from a running one. */
export const SGLANG_RELEASES: Readonly<Record<SglangRelease, ReleaseTraits>> = {
  "0.5.15": {
    reportsVersionSpans: false,
    samplesNothing: false,
    checksParameters: false,
    loadPaths: ["/v1/loads", "/get_load"],
  },
  "0.5.23": {
    reportsVersionSpans: true,
    samplesNothing: true,
    checksParameters: true,
    loadPaths: ["/v1/loads"],
  },
};

/** A release of SGLang that a test server can imitate. */
export type SglangRelease = "0.5.15" | "0.5.23";

/** The differences between releases that clients can observe. */
export interface ReleaseTraits {
  /** True if replies name the version of the weights for spans of tokens. */
  readonly reportsVersionSpans: boolean;
  /** True if a budget of 0 samples no token. Otherwise it samples one. */
  readonly samplesNothing: boolean;
  /**
   * True if unknown or wrongly typed sampling parameters get HTTP 400. Otherwise an unknown name
   * crashes the request.
   */
  readonly checksParameters: boolean;
  /** True if the server returns kept tokens. */
  readonly keepsTokens: boolean;
  /** The paths that report the load. `/v1/loads` replaced `/get_load`. */
  readonly loadPaths: readonly string[];
}

/**
 * The behaviour of each release. 0.5.15: from its sources. 0.5.23: recorded from a running server.
 */
export const SGLANG_RELEASES: Readonly<Record<SglangRelease, ReleaseTraits>> = {
  "0.5.15": {
    reportsVersionSpans: false,
    samplesNothing: false,
    checksParameters: false,
    keepsTokens: false,
    loadPaths: ["/v1/loads", "/get_load"],
  },
  "0.5.23": {
    reportsVersionSpans: true,
    samplesNothing: true,
    checksParameters: true,
    keepsTokens: true,
    loadPaths: ["/v1/loads"],
  },
};

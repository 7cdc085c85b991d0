/**
 * Token ledgers, training rows and their checks.
 *
 * @module
 */
export {
  rescoreFile,
  type FileRescoring,
  type RescoreOptions,
  type RescoredToken,
  type SkippedRow,
} from "./rescore-file.ts";
export { toSamples, type ForkPlace, type RolloutEnd, type RolloutIdentity } from "./sample.ts";
export type { Span, SpanKind } from "./span.ts";
export { TokenLedger, type DroppedStop, type SampledSpan } from "./token-ledger.ts";
export type { TurnSpan } from "./segment.ts";
export {
  verifyFile,
  type FileVerification,
  type LineViolation,
  type ReadBytes,
  type VerifyFileOptions,
} from "./verify-file.ts";
export type { RawRow } from "./violation.ts";

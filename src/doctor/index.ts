/**
 * The mismatch doctor: compares a trainer's logprobs with the engine's, and names the causes of their difference.
 *
 * @module
 */
export type { DifferenceFigures, RatioFigures } from "./analysis/difference-figures.ts";
export type { RouteFigures } from "./analysis/compare-routes.ts";
export type { Shift } from "./analysis/find-shift.ts";
export type { TemperatureFit } from "./analysis/fit-temperature.ts";
export type { ExaminedRow } from "./analysis/row-pair.ts";
export { createKindReader, type KindReader, type RunParsers } from "./analysis/token-kinds.ts";
export { diagnose, type DiagnoseOptions } from "./diagnose.ts";
export { diagnoseRun, type DiagnoseRunOptions } from "./diagnose-run.ts";
export type { LiveDiagnosis, LiveWindow } from "./live/live-doctor.ts";
export {
  defaultThresholds,
  type Cause,
  type CauseName,
  type Diagnosis,
  type Histogram,
  type Thresholds,
} from "./diagnosis.ts";
export type {
  InputProblem,
  InputProblemKind,
  RouteTable,
  TrainerRow,
} from "./input/trainer-row.ts";
export { readTrainerFile, TrainerRows } from "./input/trainer-rows.ts";
export { diagnosisPlot } from "./print/svg-plot.ts";
export { diagnosisText } from "./print/text.ts";
export type { RunFacts } from "./verdict/evidence.ts";

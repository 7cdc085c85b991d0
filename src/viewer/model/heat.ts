/** A step of a scale from ordinary to conspicuous. */
interface HeatStep {
  /** The smallest value of the step. */
  readonly from: number;
  readonly label: string;
}

/** Steps of −logprob, in nats, named by the probability of the token. */
export const surpriseSteps: readonly HeatStep[] = [
  { from: -Infinity, label: "90 % or more" },
  { from: -Math.log(0.9), label: "50 to 90 %" },
  { from: -Math.log(0.5), label: "20 to 50 %" },
  { from: -Math.log(0.2), label: "5 to 20 %" },
  { from: -Math.log(0.05), label: "1 to 5 %" },
  { from: -Math.log(0.01), label: "below 1 %" },
];

/** Steps of the distance between a recorded and a rescored logprob, in nats. */
export const differenceSteps: readonly HeatStep[] = [
  { from: -Infinity, label: "below 1e-5" },
  { from: 1e-5, label: "1e-5 to 1e-3" },
  { from: 1e-3, label: "0.001 to 0.01" },
  { from: 1e-2, label: "0.01 to 0.1" },
  { from: 0.1, label: "0.1 to 0.5" },
  { from: 0.5, label: "0.5 or more" },
];

/** Returns the index of the step that contains a value. NaN has the last step. */
export function heatOf(value: number, steps: readonly HeatStep[]): number {
  if (Number.isNaN(value)) return steps.length - 1;
  let step = 0;
  while (step + 1 < steps.length && value >= steps[step + 1]!.from) step++;
  return step;
}

/** Formats a logprob with four digits: `-0.0445`, and `-4.453e-5` near 0. */
export function formatLogprob(logprob: number): string {
  if (logprob === 0 || !Number.isFinite(logprob)) return String(logprob);
  return Math.abs(logprob) >= 0.001 ? logprob.toFixed(4) : logprob.toExponential(3);
}

/** Formats a probability as a percentage for people. */
export function formatProbability(logprob: number): string {
  const percent = Math.exp(logprob) * 100;
  if (!Number.isFinite(percent)) return "unknown";
  if (percent >= 99.95) return percent > 99.9999 ? "100 %" : ">99.9 %";
  if (percent >= 1) return `${percent.toFixed(1)} %`;
  return percent >= 0.001 ? `${percent.toPrecision(2)} %` : `${percent.toExponential(1)} %`;
}

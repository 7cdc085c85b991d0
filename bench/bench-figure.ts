/** One measured figure, as `npm run bench -- --json` prints it. */
export interface BenchFigure {
  readonly bench: string;
  readonly figure: string;
  readonly value: number;
  readonly unit: string;
  /** The other side of the ratio, in the same unit, measured in the same run. */
  readonly baseline?: number;
  /** The ratio to the baseline. Above 1 is better. */
  readonly ratio?: number;
  /** The position on an axis, such as the number of turns. */
  readonly at?: number | string;
}

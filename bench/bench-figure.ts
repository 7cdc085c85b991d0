/** One measured figure, as `npm run bench -- --json` prints it. */
export interface BenchFigure {
  readonly bench: string;
  readonly figure: string;
  readonly value: number;
  readonly unit: string;
  /** The other side of the ratio, in the same unit, measured in the same run. */
  readonly baseline?: number;
  /** How many times better than the baseline; above 1 is better. */
  readonly ratio?: number;
  /** Where on an axis the figure was taken, such as the number of turns. */
  readonly at?: number | string;
}

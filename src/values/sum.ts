/** Returns the sum, added in order. 0 if there are no numbers. */
export function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

/** Returns the mean. NaN if there are no numbers. */
export function mean(values: readonly number[]): number {
  return sum(values) / values.length;
}

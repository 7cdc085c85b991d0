import { UsageError } from "../../errors.ts";

/**
 * Checks an option that is an integer from `min` to `max`.
 *
 * @throws UsageError naming the option.
 */
export function checkCount(
  name: string,
  value: number,
  { min = 1, max }: { min?: number; max: number },
): void {
  if (Number.isSafeInteger(value) && value >= min && value <= max) return;
  throw new UsageError(`Cannot use ${value} as ${name}: expected a whole number, ${min} to ${max}`);
}

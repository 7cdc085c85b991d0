import type { TemperatureFit } from "../analysis/fit-temperature.ts";
import type { RunFacts } from "./evidence.ts";

/** A factor nearer to 1 than this is none. */
const leastChange = 0.05;

/** The part of the difference that a factor has to explain if nothing else points to it. */
const leastExplained = 0.6;

/** The same, if it is the factor that the run's temperature gives. */
const leastExpected = 0.3;

/** The largest distance from the factor that the run's temperature gives. */
const nearness = 0.15;

/** True if the factor counts as the cause of a difference. */
export function isTemperatureFound(
  { factor, explained }: TemperatureFit,
  { temperature = 1 }: RunFacts,
): boolean {
  if (Math.abs(Math.log(factor)) < leastChange) return false;
  const isExpected = expectedFactors(temperature).some(
    (expected) => Math.abs(Math.log(factor / expected)) < nearness,
  );
  return explained >= (isExpected ? leastExpected : leastExplained);
}

/** The factors if one side leaves the run's temperature out. */
function expectedFactors(temperature: number): readonly number[] {
  return temperature > 0 && temperature !== 1 ? [temperature, 1 / temperature] : [];
}

import type { TemperatureFit } from "../analysis/fit-temperature.ts";
import type { RunFacts } from "./evidence.ts";

/** A factor that is nearer to 1 than this (in its logarithm) is not named. */
const leastChange = 0.05;

/** The least values for a factor that the run's temperature does not explain. Other weights alone do not reach them. */
const demands = { explained: 0.6, correlation: 0.95 };

/** The least values for a factor that the run's temperature explains. */
const expectedDemands = { explained: 0.3, correlation: 0.85 };

/** The largest distance from the factor that the run's temperature gives. */
const nearness = 0.15;

/** True if the factor counts as the cause of a difference. */
export function isTemperatureFound(
  { factor, explained, correlation }: TemperatureFit,
  { temperature = 1 }: RunFacts,
): boolean {
  if (Math.abs(Math.log(factor)) < leastChange) return false;
  const isExpected = expectedFactors(temperature).some(
    (expected) => Math.abs(Math.log(factor / expected)) < nearness,
  );
  const least = isExpected ? expectedDemands : demands;
  return explained >= least.explained && correlation >= least.correlation;
}

/** The factors if one side leaves the run's temperature out. */
function expectedFactors(temperature: number): readonly number[] {
  return temperature > 0 && temperature !== 1 ? [temperature, 1 / temperature] : [];
}

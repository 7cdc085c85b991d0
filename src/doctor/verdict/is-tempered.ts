import type { TemperatureFit } from "../analysis/fit-temperature.ts";
import type { RunFacts } from "./evidence.ts";

/** A factor nearer to 1 than this is none. */
const leastChange = 0.05;

/** Demands on a factor that nothing else points to. Weights that merely differ leave the sides less alike. */
const demands = { explained: 0.6, correlation: 0.95 };

/** Demands on the factor that the run's temperature gives. */
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

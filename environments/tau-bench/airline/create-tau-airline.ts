import type { TauBenchBundle } from "../bundle.ts";
import type { TauEnvironment } from "../tau-environment.ts";
import { createTauEnvironment } from "../tau-environment.ts";
import { airlineDomain } from "./airline-domain.ts";

/**
 * Creates τ-bench's airline as an environment: `tau-airline`, with the split `test`. Its behaviour equals the
 * Python original's, byte for byte.
 */
export function createTauAirline({
  bundle,
}: {
  readonly bundle: Pick<TauBenchBundle, "directory" | "airline">;
}): TauEnvironment {
  return createTauEnvironment({
    domain: airlineDomain,
    data: bundle.airline,
    directory: bundle.directory,
  });
}

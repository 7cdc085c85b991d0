import type { TauBenchBundle } from "../bundle.ts";
import type { TauEnvironment } from "../tau-environment.ts";
import { createTauEnvironment } from "../tau-environment.ts";
import { retailDomain } from "./retail-domain.ts";

/**
 * Creates τ-bench's online shop as an environment: `tau-retail`, with the splits `test`, `train` and `dev`. Its
 * behaviour equals the Python original's, byte for byte.
 */
export function createTauRetail({
  bundle,
}: {
  readonly bundle: Pick<TauBenchBundle, "directory" | "retail">;
}): TauEnvironment {
  return createTauEnvironment({
    domain: retailDomain,
    data: bundle.retail,
    directory: bundle.directory,
  });
}

import type { TauBenchBundle } from "../bundle.ts";
import type { TauEnvironment } from "../tau-environment.ts";
import { createTauEnvironment } from "../tau-environment.ts";
import { retailDomain } from "./retail-domain.ts";

/**
 * τ-bench's online shop as an environment: `tau-retail`, with the splits `test`, `train` and `dev`.
 * It behaves as the Python original does, byte for byte.
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

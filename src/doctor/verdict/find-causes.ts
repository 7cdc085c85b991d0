import type { Cause } from "../diagnosis.ts";
import type { Evidence } from "./evidence.ts";
import { findMoved } from "./moved-causes.ts";
import { findOtherSet, findRoutes, findTemperature } from "./settings-causes.ts";
import { findVersions } from "./version-causes.ts";
import { findIncomplete } from "./incomplete-cause.ts";

/** Returns all causes, the strongest first. */
export function findCauses(evidence: Evidence): readonly Cause[] {
  const settings = [
    ...findTemperature(evidence),
    ...findOtherSet(evidence),
    ...findRoutes(evidence),
  ];
  const causes = [
    ...findMoved(evidence),
    ...settings,
    // Rounding cannot be separated from these.
    ...findVersions(evidence, { isNumericsHidden: settings.length > 0 }),
  ];
  return [...causes, ...findIncomplete(evidence)].toSorted(
    (one, other) =>
      Number(other.isFinding) - Number(one.isFinding) || other.strength - one.strength,
  );
}

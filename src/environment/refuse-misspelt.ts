import { UsageError } from "../errors.ts";
import { nearestName } from "../../packages/python-values/src/support/nearest-name.ts";

/**
 * Refuses an unknown member with a name that resembles a known one. It would be ignored, and the intended member
 * would be missing. Other unknown members are allowed.
 * @param owner - For the error, such as `tool lend_book`.
 * @throws UsageError naming the likely intended member.
 */
export function refuseMisspelt(options: object, known: readonly string[], owner: string): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const meant = nearestName(name, known);
    if (meant === undefined) continue;
    throw new UsageError(`Cannot define ${owner}: it has no part ${name}, did you mean ${meant}?`);
  }
}

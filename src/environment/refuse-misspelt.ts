import { UsageError } from "../errors.ts";
import { nearestName } from "../values/nearest-name.ts";

/**
 * Refuses a member that is none of the known ones and nearly is one: it would be passed over, and what was meant
 * be missing. Other members are their author's own.
 *
 * @param whose - Such as `tool lend_book`, for the error.
 * @throws UsageError naming the member that was probably meant.
 */
export function refuseMisspelt(options: object, known: readonly string[], whose: string): void {
  for (const name of Object.keys(options)) {
    if (known.includes(name)) continue;
    const meant = nearestName(name, known);
    if (meant === undefined) continue;
    throw new UsageError(`Cannot define ${whose}: it has no part ${name}, did you mean ${meant}?`);
  }
}

import { UsageError } from "../../../errors.ts";

/**
 * Returns the behaviour of a release by its name.
 * @throws UsageError that names the known releases.
 */
export function findRelease<Name extends string, Traits>(
  releases: Readonly<Record<Name, Traits>>,
  { server, release }: { readonly server: string; readonly release: Name },
): Traits {
  const traits = Object.hasOwn(releases, release) ? releases[release] : undefined;
  if (traits !== undefined) return traits;
  const names = Object.keys(releases).join(", ");
  throw new UsageError(`Cannot play ${server} ${release}: expected a release of ${names}`);
}

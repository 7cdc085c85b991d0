/** A version of the policy as engines name it; nothing where that is no whole number that can be announced. */
export function readVersion(name: string): number | undefined {
  const version = /^-?\d{1,16}$/.test(name) ? Number(name) : NaN;
  return Number.isSafeInteger(version) ? version : undefined;
}

/** A version of the policy as engines name it; nothing where that is no whole number. */
export function readVersion(name: string): number | undefined {
  return /^-?\d{1,15}$/.test(name) ? Number(name) : undefined;
}

/** Parses a policy version that an engine names; returns `undefined` unless it is a whole number. */
export function readVersion(name: string): number | undefined {
  const version = /^-?\d{1,16}$/.test(name) ? Number(name) : NaN;
  return Number.isSafeInteger(version) ? version : undefined;
}

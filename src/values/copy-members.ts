/**
 * Returns a copy of a foreign object: its own members, and those of the given names even if inherited, such as
 * getters of its class, which spreading omits.
 */
export function copyMembers<Value extends object>(value: Value, names: readonly string[]): Value {
  const copy = { ...value } as Record<string, unknown>;
  for (const name of names) {
    if (copy[name] !== undefined) continue;
    const member = (value as Readonly<Record<string, unknown>>)[name];
    if (member !== undefined) copy[name] = member;
  }
  return copy as Value;
}

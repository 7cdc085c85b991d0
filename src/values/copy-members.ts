/**
 * A copy of an object that may be anyone's: its own members, and those of the given names wherever it has them, such
 * as the getters of its class, which spreading it passes over.
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

/**
 * Returns a copy of an object without the members that are `undefined`. For three or more optional
 * members at once; write `...(x !== undefined && { x })` for fewer.
 */
export function withoutUndefined<Fields extends Readonly<Record<string, unknown>>>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>;
  };
}

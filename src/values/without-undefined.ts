/**
 * Returns a copy of an object without its `undefined` members. Use it for three or more optional members; write
 * `...(x !== undefined && { x })` for fewer.
 */
export function withoutUndefined<Fields extends Readonly<Record<string, unknown>>>(
  fields: Fields,
): { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: Exclude<Fields[Name], undefined>;
  };
}

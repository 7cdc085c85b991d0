/** Reports a member that only some records have. */
export function isMissing(
  has: Map<string, boolean>,
  {
    place,
    name,
    value,
  }: { readonly place: string; readonly name: string; readonly value: unknown },
): readonly string[] {
  const isThere = value !== undefined && value !== null;
  const first = has.get(name) ?? isThere;
  has.set(name, first);
  if (first === isThere) return [];
  return [
    first
      ? `${place} is missing, and the first record has it: the trainer looks at the first record only`
      : `${place} is present, and the first record has none: the trainer looks at the first record only`,
  ];
}

const uuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/**
 * Returns the text of a file or request without the differences between two plays of the same run:
 * random ids become their number in order of appearance, and `places` (folders, addresses) become
 * their names.
 */
export function stableText(text: string, places: Readonly<Record<string, string>>): string {
  const ids = new Map<string, string>();
  let stable = text;
  for (const [place, name] of Object.entries(places)) stable = stable.replaceAll(place, name);
  return stable.replace(uuid, (id) => {
    const known = ids.get(id) ?? `id-${ids.size}`;
    ids.set(id, known);
    return known;
  });
}

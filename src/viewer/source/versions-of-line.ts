const key = '"policyVersions":[';

/** Returns the versions that a row names, in order, without parsing the row. */
export function versionsOfLine(line: Buffer): readonly string[] {
  const start = line.indexOf(key);
  if (start < 0) return [];
  const found = new Set<string>();
  let at = start + key.length;
  // A version's text holds no quotation mark but an escaped one, and most entries are empty.
  while (line[at] === 0x22) {
    let end = at + 1;
    while (end < line.length && line[end] !== 0x22) end += line[end] === 0x5c ? 2 : 1;
    if (end > at + 1) found.add(line.toString("utf8", at, end + 1));
    at = end + 2;
  }
  return [...found].map((text) => JSON.parse(text) as string);
}

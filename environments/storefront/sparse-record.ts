/**
 * Returns a record for keys that are widely spaced numbers, such as item ids. V8 would store such an object as an
 * array with a slot for each number up to the largest (some 7 KB for an id), unless a property is read-only;
 * therefore all properties are read-only.
 */
export function sparseRecord(
  entries: Iterable<readonly [string, string]>,
): Readonly<Record<string, string>> {
  const record: Record<string, string> = {};
  for (const [key, value] of entries) {
    Object.defineProperty(record, key, { value, enumerable: true, configurable: true });
  }
  return record;
}

/**
 * A record whose keys are numbers far from each other, such as item ids, and whose values stay as they are.
 * V8 keeps such an object as an array with a place for each number up to the largest (some 7 KB for an id),
 * unless a value may not be written.
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

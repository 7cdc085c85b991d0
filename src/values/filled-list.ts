/** Lists of up to this length are copied from a cached one, which takes a fraction of the time of filling them. */
const keptLength = 16_384;

/**
 * Makes lists of one value.
 *
 * @param kind - The first content of the cached list, which sets its element kind in V8: `[0.5]` for numbers that
 * may be fractions, as V8 copies a list of integers when the first fraction is written.
 */
export function listsOf<Value>(
  value: Value,
  kind: readonly Value[] = [value],
): (length: number) => Value[] {
  let kept: Value[] | undefined;
  const make = (length: number): Value[] => {
    const list = kind.slice();
    list.length = length;
    return list.fill(value);
  };
  return (length) => {
    if (length > keptLength) return make(length);
    kept ??= make(keptLength);
    return kept.slice(0, length);
  };
}

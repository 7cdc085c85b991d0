/** Lists of up to this length are copies of one that is kept, which takes a fraction of filling each. */
const keptLength = 16_384;

/**
 * Makes lists of one value.
 *
 * @param kind - What a list of the kept value's kind begins as: `[0.5]` for numbers that may be fractions, as a list
 *   of whole numbers is copied when the first fraction comes.
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

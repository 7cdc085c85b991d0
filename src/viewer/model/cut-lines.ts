/** The properties of tokens that decide where lines end. */
interface LineSource {
  readonly tokenCount: number;
  /** Returns the token's width in columns, at least 1. */
  widthAt(index: number): number;
  /** True if the line ends after the token. Call it after `widthAt()`. */
  endsLineAt(index: number): boolean;
  /**
   * `breaks[i]` is 1 if token i has another author or turn than the token before it. A line never
   * crosses such a break.
   */
  readonly breaks: Uint8Array;
}

/** The largest size of a line. */
export interface LineLimits {
  readonly columns: number;
  readonly maxTokens: number;
}

/**
 * Cuts a row into lines. Returns the index of each line's first token in order, and at the end the
 * number of tokens. A token that is wider than a line has its own line.
 */
export function cutLines(source: LineSource, { columns, maxTokens }: LineLimits): Uint32Array {
  const { tokenCount, breaks } = source;
  const starts: number[] = [];
  let used = Infinity;
  let count = 0;
  for (let index = 0; index < tokenCount; index++) {
    const width = source.widthAt(index);
    if (used + width > columns || count >= maxTokens || breaks[index] === 1) {
      starts.push(index);
      used = 0;
      count = 0;
    }
    used += width;
    count++;
    if (source.endsLineAt(index)) used = Infinity;
  }
  starts.push(tokenCount);
  return Uint32Array.from(starts);
}

/** Returns the line that contains a token, as an index into the result of `cutLines()`. */
export function lineOf(starts: Uint32Array, index: number): number {
  let low = 0;
  let high = starts.length - 1;
  while (low + 1 < high) {
    const middle = (low + high) >>> 1;
    if (starts[middle]! <= index) low = middle;
    else high = middle;
  }
  return low;
}

/** The totals of an episode, as its record states them. */
interface StatedTotals {
  readonly outcome: unknown;
  /** The number of rows that the record states. `undefined` if it states none. */
  readonly rowCount: number | undefined;
  readonly turnCount: number;
  /** Number of turns before a fork. 0 if the episode is not a fork. */
  readonly turnCountBefore: number;
  readonly tokenCount: unknown;
}

/** A total that differs from the rows. */
interface WrongTotal {
  readonly name: "turns" | "ids";
  readonly stated: unknown;
  readonly actual: number;
}

/** Compares an episode's totals with its training rows. */
export function compareTotals(
  { outcome, rowCount, turnCount, turnCountBefore, tokenCount }: StatedTotals,
  rows: { readonly turns: number; readonly tokens: number },
): readonly WrongTotal[] {
  // The turns before a fork are in the original's rows.
  const before = Math.min(turnCountBefore, turnCount);
  // If an engine changed its prompt ids, the episode failed without rows.
  const isLost = rowCount === 0 && tokenCount === 0 && outcome === "failed";
  const turns = { name: "turns", stated: turnCount, actual: before + rows.turns } as const;
  const ids = { name: "ids", stated: tokenCount, actual: rows.tokens } as const;
  return (isLost ? [ids] : [turns, ids]).filter(({ stated, actual }) => stated !== actual);
}

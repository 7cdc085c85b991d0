/** What an episode says that its training rows add up to. */
interface StatedTotals {
  readonly outcome: unknown;
  /** `undefined` where it does not say. */
  readonly rowCount: number | undefined;
  readonly turnCount: number;
  /** The turns that it took from what it parts from; 0 where it parts from nothing. */
  readonly turnCountBefore: number;
  readonly tokenCount: unknown;
}

/** A sum that the rows do not bear out. */
interface WrongTotal {
  readonly name: "turns" | "ids";
  readonly stated: unknown;
  readonly actual: number;
}

/** Compares what an episode says of its turns and ids with those that its training rows hold. */
export function compareTotals(
  { outcome, rowCount, turnCount, turnCountBefore, tokenCount }: StatedTotals,
  rows: { readonly turns: number; readonly tokens: number },
): readonly WrongTotal[] {
  // The turns before a fork are in the rows of what it parts from.
  const before = Math.min(turnCountBefore, turnCount);
  // An engine that wrote into the ids that it was sent leaves none that anybody can vouch for.
  const isLost = rowCount === 0 && tokenCount === 0 && outcome === "failed";
  const turns = { name: "turns", stated: turnCount, actual: before + rows.turns } as const;
  const ids = { name: "ids", stated: tokenCount, actual: rows.tokens } as const;
  return (isLost ? [ids] : [turns, ids]).filter(({ stated, actual }) => stated !== actual);
}

import type { DifferenceFigures } from "../analysis/difference-figures.ts";

/** A group of tokens with its figures. */
export type NamedFigures = readonly [name: string, figures: DifferenceFigures];

/** Returns the groups by lag, the smallest lag first, and `unknown` at the end. */
export function lagGroups(
  byLag: Readonly<Record<string, DifferenceFigures>>,
): readonly NamedFigures[] {
  const order = ([name]: NamedFigures): number => (name === "unknown" ? Infinity : Number(name));
  return Object.entries(byLag).toSorted((one, other) => order(one) - order(other) || 0);
}

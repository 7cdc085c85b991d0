import { UsageError } from "../../../python-values/src/support/index.ts";
import { families } from "../families.ts";
import type { ReasoningParser } from "./reasoning-parser.ts";

const parsers = families
  .flatMap(({ reasoningParsers = [] }) => reasoningParsers)
  .toSorted((left, right) => (left.name < right.name ? -1 : 1));

/** Returns every reasoning parser, sorted by name. */
export function listReasoningParsers(): readonly ReasoningParser[] {
  return parsers;
}

/**
 * Finds a reasoning parser by its name, such as `qwen3`; case does not matter.
 *
 * @throws UsageError naming the known parsers if no parser has that name.
 */
export function findReasoningParser(name: string): ReasoningParser {
  const wanted = name.toLowerCase();
  const found = parsers.find((parser) => [parser.name, ...parser.aliases].includes(wanted));
  if (found !== undefined) return found;
  const known = parsers.flatMap((parser) => [parser.name, ...parser.aliases]).toSorted();
  throw new UsageError(
    `Cannot find reasoning parser ${JSON.stringify(name)}: expected one of ${known.join(", ")}`,
  );
}

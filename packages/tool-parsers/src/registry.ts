import { expectedName, UsageError } from "../../python-values/src/support/index.ts";
import { families } from "./families.ts";
import type { ToolCallParser } from "./tool-call-parser.ts";

const parsers = families
  .flatMap(({ toolCallParsers = [] }) => toolCallParsers)
  .toSorted((left, right) => (left.name < right.name ? -1 : 1));

/** Returns every tool-call parser, sorted by name. */
export function listToolCallParsers(): readonly ToolCallParser[] {
  return parsers;
}

/**
 * Finds a tool-call parser by its name or an alias, such as `qwen25` or `qwen`.
 *
 * @throws UsageError naming the known parsers if no parser has that name.
 */
export function findToolCallParser(name: string): ToolCallParser {
  const found = parsers.find((parser) => parser.name === name || parser.aliases.includes(name));
  if (found !== undefined) return found;
  const known = parsers.flatMap((parser) => [parser.name, ...parser.aliases]).toSorted();
  throw new UsageError(
    `Cannot find tool-call parser ${JSON.stringify(name)}: ${expectedName(name, known)}`,
  );
}

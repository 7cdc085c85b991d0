import { UsageError } from "../errors.ts";
import { qwen25 } from "./sglang/qwen25.ts";
import type { ToolCallParser } from "./tool-call-parser.ts";

const parsers: readonly ToolCallParser[] = [qwen25];

/** Every tool-call parser, by name. */
export function listToolCallParsers(): readonly ToolCallParser[] {
  return parsers;
}

/**
 * Finds a tool-call parser by its name or an alias, such as `qwen25` or `qwen`.
 *
 * @throws UsageError naming the known parsers where there is none of that name.
 */
export function findToolCallParser(name: string): ToolCallParser {
  const found = parsers.find((parser) => parser.name === name || parser.aliases.includes(name));
  if (found !== undefined) return found;
  const known = parsers.flatMap((parser) => [parser.name, ...parser.aliases]).toSorted();
  throw new UsageError(
    `Cannot find tool-call parser ${JSON.stringify(name)}: expected one of ${known.join(", ")}`,
  );
}

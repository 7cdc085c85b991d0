import type { ReasoningParser } from "./reasoning/reasoning-parser.ts";
import type { ToolCallParser } from "./tool-call-parser.ts";

/** The parsers of the models that share a format, or that come from one maker. */
export interface ModelFamily {
  readonly toolCallParsers?: readonly ToolCallParser[];
  readonly reasoningParsers?: readonly ReasoningParser[];
}

/**
 * Tool-call and reasoning parsers.
 *
 * @module
 */
export { chooseParser, type ParserChoice, type ParserSettings } from "./choose-parser.ts";
export type {
  ReasoningOptions,
  ReasoningParser,
  ReasoningResult,
  ReasoningStream,
} from "./reasoning/reasoning-parser.ts";
export { findReasoningParser, listReasoningParsers } from "./reasoning/registry.ts";
export { findToolCallParser, listToolCallParsers } from "./registry.ts";
export type {
  Attempt,
  AttemptStatus,
  CompatCall,
  CompatResult,
  Dialect,
  ParseOptions,
  ParseResult,
  ToolCallParser,
  ToolCallStream,
  ToolStreamEvent,
} from "./tool-call-parser.ts";

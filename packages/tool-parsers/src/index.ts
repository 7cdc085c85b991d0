/**
 * Tool-call and reasoning parsers.
 *
 * @module
 */
export type { PyDict, PyList, PyValue } from "../../python-values/src/index.ts";
export { UsageError } from "../../python-values/src/support/index.ts";
export { chooseParser, type ParserChoice, type ParserSettings } from "./choose-parser.ts";
export { createToolDefinitions } from "./create-tool-definitions.ts";
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
export type { ToolDefinition } from "./tool-definition.ts";

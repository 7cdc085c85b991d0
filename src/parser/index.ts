/**
 * Tool-call and reasoning parsers.
 *
 * @module
 */
export {
  chooseParser,
  type ParserChoice,
  type ParserSettings,
} from "../../packages/tool-parsers/src/choose-parser.ts";
export type {
  ReasoningOptions,
  ReasoningParser,
  ReasoningResult,
  ReasoningStream,
} from "../../packages/tool-parsers/src/reasoning/reasoning-parser.ts";
export {
  findReasoningParser,
  listReasoningParsers,
} from "../../packages/tool-parsers/src/reasoning/registry.ts";
export {
  findToolCallParser,
  listToolCallParsers,
} from "../../packages/tool-parsers/src/registry.ts";
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
} from "../../packages/tool-parsers/src/tool-call-parser.ts";

import type { ToolDefinition } from "./tool-definition.ts";
import type { PyDict } from "../../python-values/src/index.ts";

/** The engine that `compat` reproduces. */
export type Dialect = "sglang" | "vllm";

/** The options of one parser call. */
export interface ParseOptions {
  readonly tools: readonly ToolDefinition[];
  /** Default `sglang`. */
  readonly dialect?: Dialect;
  /** The engine release to reproduce, such as `0.5.15` or `2026-08` (the default). */
  readonly engineVersion?: string;
  /** The reason why the engine stopped. `length` marks every attempt of the turn as not executable. */
  readonly finishReason?: "stop" | "length";
  /** True if the engine runs with `SGLANG_FORWARD_UNKNOWN_TOOLS=1`. Default false. */
  readonly forwardUnknownTools?: boolean;
  /** The special tokens of the model's vocabulary, for formats with other tokens in each model. */
  readonly vocabulary?: readonly string[];
  /** The model's own `response_template`, for the parsers that read by a template. */
  readonly responseTemplate?: PyDict;
}

/** The exact result of the chosen engine release. */
export interface CompatResult {
  readonly normalText: string;
  readonly calls: readonly CompatCall[];
  /** True if the engine's parser would raise on this text. `calls` is then empty. */
  readonly raises: boolean;
}

/** A tool call as the engine would report it. */
export interface CompatCall {
  readonly name: string;
  /** The exact argument text that the engine would return. */
  readonly argumentsText: string;
  /**
   * The engine's own number for the call: the position of the tool, an ordinal, or -1. It is not
   * the call's ordinal.
   */
  readonly toolIndex: number;
}

/** The outcome of one attempt to call a tool. */
export type AttemptStatus =
  | "ok"
  | "invalid-json"
  | "unclosed-block"
  | "missing-name"
  | "malformed-structure"
  | "unknown-tool"
  | "non-object-arguments"
  | "schema-mismatch"
  | "schema-unchecked"
  | "duplicate-call"
  | "in-reasoning"
  | "trailing-text"
  | "marker-only"
  | "double-encoded-arguments"
  | "coerced"
  | "truncated-by-length";

/** One attempt to call a tool, including attempts that the engine does not report. */
export interface Attempt {
  /** The primary status. Only `ok` attempts may be executed. */
  readonly status: AttemptStatus;
  /** Further findings about the attempt, in a fixed order. */
  readonly diagnostics: readonly { readonly status: AttemptStatus; readonly detail: string }[];
  /** The block's text, markers included. */
  readonly raw: string;
  /** The place of `raw` in the text, in UTF-16 code units, end exclusive. */
  readonly span: readonly [start: number, end: number];
  readonly name?: string;
  /** The arguments as the engine's parser would report them (Python JSON text). */
  readonly argumentsText?: string;
  /** The id that the model gave the call, in formats that write one (Kimi K2, Mistral). */
  readonly id?: string;
}

/** The result of a parser for one turn's text. */
export interface ParseResult {
  readonly compat: CompatResult;
  /** The attempts in the order of the text. The attempts and the text outside them cover every character. */
  readonly attempts: readonly Attempt[];
}

/** An event of a stream. */
export type ToolStreamEvent =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "tool-call";
      /** The call's ordinal in the turn. */
      readonly index: number;
      readonly call: CompatCall;
    }
  /** The last event: the result of `parse()` for the complete text. */
  | { readonly type: "end"; readonly result: ParseResult };

/**
 * Parses a text that arrives in pieces. The joined texts and calls of its events equal `compat` for
 * the complete text, for any division into pieces. There is one exception: text that was released
 * stays released, even if the engine then raises, or if a malformed call makes vLLM move or drop
 * the text before it.
 */
export interface ToolCallStream {
  push(chunk: string): readonly ToolStreamEvent[];
  /** Parses the complete text. The stream cannot be used any more. */
  end(): readonly ToolStreamEvent[];
}

/** One tool-call grammar. It never throws for any text, and its time is linear in the text. */
export interface ToolCallParser {
  /** The registry name, such as `qwen25`. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly dialects: readonly Dialect[];
  /** Literals that open a tool call in this grammar. They help to find parsers for templates. */
  readonly markers: readonly string[];
  /**
   * Stop literals that close a call as well as the turn (gpt-oss: `<|call|>`). The text to parse ends with such a
   * literal; other stop literals are cut off. Absent if the format has no such literal.
   */
  readonly closingStops?: readonly string[];
  parse(text: string, options: ParseOptions): ParseResult;
  createStream(options: ParseOptions): ToolCallStream;
}

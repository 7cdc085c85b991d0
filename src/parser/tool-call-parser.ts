import type { ToolDefinition } from "../message.ts";
import type { PyDict } from "../python/value.ts";

/** Whose behaviour `compat` reproduces. */
export type Dialect = "sglang" | "vllm";

/** What one parser call is told. */
export interface ParseOptions {
  readonly tools: readonly ToolDefinition[];
  /** Default `sglang`. */
  readonly dialect?: Dialect;
  /** The engine release whose behaviour is wanted, such as `0.5.15` or `2026-08` (the default). */
  readonly engineVersion?: string;
  /** `length` marks every attempt of the turn as not executable. */
  readonly finishReason?: "stop" | "length";
  /** The engine runs with SGLANG_FORWARD_UNKNOWN_TOOLS=1. Default false. */
  readonly forwardUnknownTools?: boolean;
  /** Special tokens of the model's vocabulary, for formats whose tokens differ between models. */
  readonly vocabulary?: readonly string[];
  /** The model's own `response_template`, for the parsers that read by it. */
  readonly responseTemplate?: PyDict;
}

/** Exactly what the chosen engine release would report. */
export interface CompatResult {
  readonly normalText: string;
  readonly calls: readonly CompatCall[];
  /** The engine's parser would raise on this text; `calls` is then empty. */
  readonly raises: boolean;
}

/** A tool call as the engine would report it. */
export interface CompatCall {
  readonly name: string;
  /** The exact argument text that the engine would give. */
  readonly argumentsText: string;
  /** As that engine numbers it (position of the tool, ordinal, or -1). Not the call's ordinal. */
  readonly toolIndex: number;
}

/** What became of one attempt to call a tool. */
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

/** One attempt to call a tool, whatever the engine would have made of it. */
export interface Attempt {
  /** The primary status; `ok` attempts are the ones that may be executed. */
  readonly status: AttemptStatus;
  /** Further things to say about the attempt, in a fixed order. */
  readonly diagnostics: readonly { readonly status: AttemptStatus; readonly detail: string }[];
  /** The block's text, markers included. */
  readonly raw: string;
  /** Place of `raw` in the text, in UTF-16 code units, end exclusive. */
  readonly span: readonly [start: number, end: number];
  readonly name?: string;
  /** The arguments as the engine's parser would hand them on (Python JSON text). */
  readonly argumentsText?: string;
  /** The id that the model gave the call, in formats where it writes one (Kimi K2, Mistral). */
  readonly id?: string;
}

/** What a parser makes of one turn's text. */
export interface ParseResult {
  readonly compat: CompatResult;
  /** In the order of the text; together with the text outside them they account for every character. */
  readonly attempts: readonly Attempt[];
}

/** What a stream has to tell. */
export type ToolStreamEvent =
  | { readonly type: "text"; readonly text: string }
  | {
      readonly type: "tool-call";
      /** The call's ordinal in the turn. */
      readonly index: number;
      readonly call: CompatCall;
    }
  /** The last event: what `parse()` gives for the whole text. */
  | { readonly type: "end"; readonly result: ParseResult };

/**
 * Parses a text that arrives in pieces. The texts and the calls of its events, joined, are those of
 * `compat` for the whole text, however it was cut. The exception: where the engine raises, or where
 * a malformed call makes vLLM move or drop the text in front of it, text that was released stands.
 */
export interface ToolCallStream {
  push(chunk: string): readonly ToolStreamEvent[];
  /** Parses the whole. The stream cannot be used any more. */
  end(): readonly ToolStreamEvent[];
}

/** One tool-call grammar. Total: no text makes it throw, and time is linear in the text. */
export interface ToolCallParser {
  /** The registry name, such as `qwen25`. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly dialects: readonly Dialect[];
  /** Literals that open a tool call in this grammar; used to find parsers for templates. */
  readonly markers: readonly string[];
  /**
   * Stop literals that close a call as well as the turn (gpt-oss' `<|call|>`): the text to parse ends
   * with them, where others are cut off. Absent where there are none.
   */
  readonly closingStops?: readonly string[];
  parse(text: string, options: ParseOptions): ParseResult;
  createStream(options: ParseOptions): ToolCallStream;
}

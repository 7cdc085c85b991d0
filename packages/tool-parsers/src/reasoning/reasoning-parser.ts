import type { PyDict } from "../../../python-values/src/index.ts";
import type { Dialect } from "../tool-call-parser.ts";

/** The options of a reasoning parser. */
export interface ReasoningOptions {
  /**
   * The engine to reproduce. Default `sglang`, if it has the parser. With `vllm`, a parser without
   * vLLM behaviour splits as SGLang's does.
   */
  readonly dialect?: Dialect;
  /**
   * The SGLang release to reproduce, such as `0.5.15` or `2026-08` (the default). With `vllm`,
   * releases of vLLM are accepted too; all of them split reasoning alike.
   */
  readonly engineVersion?: string;
  /**
   * True if the text begins inside the reasoning because the template opened it. Default: the
   * engine's default for the parser.
   */
  readonly forceReasoning?: boolean;
  /** True if a tool-call parser reads the normal text afterwards. Default false. */
  readonly toolCallParserActive?: boolean;
  /**
   * True if reasoning becomes the normal text if that would be empty. Default false, except for
   * Ling 3.
   */
  readonly forceNonemptyContent?: boolean;
  /**
   * The reasoning effort, for formats that name it in their tags (K2 Horizon: `high`, the default,
   * `medium` or `low`).
   */
  readonly reasoningEffort?: string;
  /** The model's own `response_template`, for the parsers that read by a template. */
  readonly responseTemplate?: PyDict;
}

/** The two parts of a turn's text. */
export interface ReasoningResult {
  readonly reasoning: string;
  readonly normalText: string;
}

/**
 * Splits a text that arrives in pieces. The joined pieces equal the result of `parse()` for the
 * complete text, for any division into pieces. Each piece is released as soon as later text cannot
 * change it.
 */
export interface ReasoningStream {
  push(chunk: string): ReasoningResult;
  /** Releases the text that was held back. The stream cannot be used any more. */
  end(): ReasoningResult;
}

/**
 * Splits a turn's text into reasoning and normal text, as the engine does before it parses tool
 * calls.
 */
export interface ReasoningParser {
  /** The registry name, such as `qwen3`. */
  readonly name: string;
  readonly aliases: readonly string[];
  /** The engines that the parser reproduces exactly. */
  readonly dialects: readonly Dialect[];
  /** Literals that open the reasoning in this format. */
  readonly markers: readonly string[];
  /**
   * The literal that closes the reasoning, in formats in which it appears once, between two
   * literals.
   */
  readonly closer?: string;
  parse(text: string, options?: ReasoningOptions): ReasoningResult;
  createStream(options?: ReasoningOptions): ReasoningStream;
}

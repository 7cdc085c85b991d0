import type { PyDict } from "../../python/value.ts";
import type { Dialect } from "../tool-call-parser.ts";

/** What a reasoning parser is told. */
export interface ReasoningOptions {
  /**
   * Whose behaviour is wanted. Default `sglang`, if it has the parser; with `vllm` a parser that has no
   * reading of its own for it parts as SGLang's does.
   */
  readonly dialect?: Dialect;
  /**
   * The SGLang release whose behaviour is wanted, such as `0.5.15` or `2026-08` (the default). With `vllm`
   * its releases are taken too, which all read reasoning alike.
   */
  readonly engineVersion?: string;
  /**
   * True if the text begins inside the reasoning, because the template opened it. Default: what the
   * engine does for the parser where nothing says otherwise.
   */
  readonly forceReasoning?: boolean;
  /** True if a tool-call parser reads the normal text afterwards. Default false. */
  readonly toolCallParserActive?: boolean;
  /**
   * True if reasoning becomes the normal text where that would be empty. Default false, but for
   * Ling 3.
   */
  readonly forceNonemptyContent?: boolean;
  /**
   * How hard the model was asked to think, for formats whose tags tell (K2 Horizon: `high`, the default,
   * `medium` or `low`).
   */
  readonly reasoningEffort?: string;
  /** The model's own `response_template`, for the parsers that read by it. */
  readonly responseTemplate?: PyDict;
}

/** A turn's text, parted. */
export interface ReasoningResult {
  readonly reasoning: string;
  readonly normalText: string;
}

/**
 * Parts a text that arrives in pieces. The pieces that it returns, joined, are what `parse()` returns
 * for the whole text, however it was cut; each is released as soon as nothing that may still come can
 * change it.
 */
export interface ReasoningStream {
  push(chunk: string): ReasoningResult;
  /** Releases what was held back. The stream cannot be used any more. */
  end(): ReasoningResult;
}

/** Parts a turn's text into reasoning and normal text, as the engine does before tool calls are parsed. */
export interface ReasoningParser {
  /** The registry name, such as `qwen3`. */
  readonly name: string;
  readonly aliases: readonly string[];
  /** Whose behaviour it has exactly. */
  readonly dialects: readonly Dialect[];
  /** Literals that open the reasoning in this format. */
  readonly markers: readonly string[];
  /** Literal that closes the reasoning, in formats where it stands once, between two literals. */
  readonly closer?: string;
  parse(text: string, options?: ReasoningOptions): ReasoningResult;
  createStream(options?: ReasoningOptions): ReasoningStream;
}

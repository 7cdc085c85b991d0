import { UsageError } from "../../python-values/src/support/index.ts";
import { PythonError } from "../../python-values/src/index.ts";
import { toAttempts, type Block } from "./attempt.ts";
import { ReleasingStream, type ReleaseRule } from "./tool-call-stream.ts";
import { createParseContext, type ParseContext } from "./parse-context.ts";
import { findJsonTagBlocks, type JsonTagFormat } from "./shared/json/json-tag-blocks.ts";
import { findTagBlocks, type TagFormat } from "./shared/tags/tag-blocks.ts";
import type {
  CompatCall,
  CompatResult,
  Dialect,
  ParseOptions,
  ParseResult,
  ToolCallParser,
} from "./tool-call-parser.ts";

/** The result of an engine's parser for a text. */
export interface EngineResult {
  readonly normalText: string;
  readonly calls: readonly CompatCall[];
}

/** The behaviour of one engine for one format. */
export interface EngineReading {
  /** The text that a stream may release before the end. */
  readonly release: ReleaseRule;
  /**
   * Returns the result of the engine's parser for the text.
   *
   * @throws PythonError if the engine's parser raises.
   */
  read(text: string, context: ParseContext): EngineResult;
}

/**
 * One tool-call format: the behaviour of each engine, and a reader of every attempt in the text.
 */
export interface Grammar {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** Literals that open a tool call. Default: the opening tag. */
  readonly markers?: readonly string[];
  /** Stop literals that close a call as well as the turn. */
  readonly closingStops?: readonly string[];
  /**
   * Matches text that may follow a call without being part of the answer, such as the end of a section of calls. The
   * pattern has the flag `g`.
   */
  readonly closers?: RegExp;
  /** The behaviour of each engine that has the format. */
  readonly readings: Readonly<Partial<Record<Dialect, EngineReading>>>;
  /** True if calls inside the reasoning count. Default false. */
  readonly readsReasoning?: boolean;
  /**
   * Finds every attempt to call a tool, in order and without overlap, including those that the
   * engines do not report. A format whose calls stand between tags gives `blocks` instead.
   */
  readonly findBlocks?: (text: string, context: ParseContext) => readonly Block[];
  /** The tags around a call, and the reader of the text between them. */
  readonly blocks?: TagFormat;
  /** The tags around a call that is written as JSON. */
  readonly json?: JsonTagFormat;
}

/** Makes the parser of a grammar. */
export function defineParser(grammar: Grammar): ToolCallParser {
  const dialects = Object.keys(grammar.readings) as Dialect[];
  return {
    name: grammar.name,
    aliases: grammar.aliases ?? [],
    dialects,
    markers: grammar.markers ?? [(grammar.blocks ?? grammar.json)?.open ?? ""],
    ...(grammar.closingStops !== undefined && { closingStops: grammar.closingStops }),
    parse: (text, options) => parse(grammar, text, options),
    createStream: (options) => {
      const { dialect } = createParseContext(options);
      const { release } = readingOf(grammar, dialect);
      return new ReleasingStream(release, (text) => parse(grammar, text, options));
    },
  };
}

function parse(grammar: Grammar, text: string, options: ParseOptions): ParseResult {
  const context = createParseContext(options);
  const compat = readAsEngine(grammar, text, context);
  const blocks = findBlocks(grammar, text, context);
  return {
    compat,
    attempts: toAttempts(blocks, {
      text,
      context,
      compat,
      readsReasoning: grammar.readsReasoning ?? false,
      closers: grammar.closers,
      finishReason: options.finishReason,
    }),
  };
}

function findBlocks(grammar: Grammar, text: string, context: ParseContext): readonly Block[] {
  const { blocks, json, findBlocks: find } = grammar;
  if (find !== undefined) return find(text, context);
  if (json !== undefined) return findJsonTagBlocks(text, json);
  return blocks === undefined ? [] : findTagBlocks(text, blocks, context);
}

function readAsEngine(grammar: Grammar, text: string, context: ParseContext): CompatResult {
  const reading = readingOf(grammar, context.dialect);
  try {
    const { normalText, calls } = reading.read(text, context);
    return { normalText, calls, raises: false };
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    return { normalText: "", calls: [], raises: true };
  }
}

function readingOf(grammar: Grammar, dialect: Dialect): EngineReading {
  const reading = grammar.readings[dialect];
  if (reading !== undefined) return reading;
  throw new UsageError(
    `Cannot parse ${grammar.name} as ${dialect}: that engine has no such parser, ` +
      `expected dialect ${Object.keys(grammar.readings).join(" or ")}`,
  );
}

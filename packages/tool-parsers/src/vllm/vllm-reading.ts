import { PythonError } from "../../../python-values/src/index.ts";
import type { EngineReading } from "../grammar.ts";
import type { ParseContext } from "../parse-context.ts";
import { catchPython } from "../shared/python/python-catch.ts";
import type { ReleaseRule } from "../tool-call-stream.ts";

/** The result of one of vLLM's parsers. */
export interface VllmExtraction {
  /** The text around the calls. */
  readonly content: string;
  readonly calls: readonly VllmCall[];
}

/** A call as vLLM reports it. */
export interface VllmCall {
  readonly name: string;
  readonly argumentsText: string;
}

/** One of vLLM's tool parsers. */
interface VllmParser {
  /** A literal without which the parser leaves the text unchanged. Required unless `release` is given. */
  readonly marker?: string;
  /** True if the parser removes white space around the text before the first call. Default false. */
  readonly strips?: boolean;
  /** The text that a stream may release before its end. Default: everything before the marker. */
  readonly release?: ReleaseRule;
  /** True if any exception makes the whole turn plain text. Default false. */
  readonly catchesAll?: boolean;
  /**
   * Reads the calls. `undefined` means that the parser found none and leaves the text as it is.
   *
   * @throws PythonError if the parser raises.
   */
  readonly extract: (text: string, context: ParseContext) => VllmExtraction | undefined;
}

/**
 * Wraps a parser as vLLM's serving code does: calls are numbered in order, and calls to unknown
 * tools are reported unless the parser itself drops them.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/abstract_tool_parser.py`.
 */
export function vllmReading(parser: VllmParser): EngineReading {
  const { marker = "", strips = false, catchesAll = false } = parser;
  return {
    release: parser.release ?? { stops: [marker], strips },
    read(text, context) {
      const extract = (): VllmExtraction | undefined =>
        text.includes(marker) ? parser.extract(text, context) : undefined;
      const found = catchesAll ? catchPython(extract) : extract();
      const { content, calls } = found ?? { content: text, calls: [] };
      return {
        normalText: content,
        calls: calls.map((call, toolIndex) => ({ ...call, toolIndex })),
      };
    },
  };
}

/** Makes a reading that 0.33 introduced. An older release behaves as 0.33 does. */
export function sinceVllm033(reading: EngineReading): EngineReading {
  return {
    release: reading.release,
    read: (text, context) => reading.read(text, { ...context, engineVersion: "0.33" }),
  };
}

/** Makes a reading that changed with 0.33. A stream releases only text that both readings allow. */
export function byVersion(old: EngineReading, current: EngineReading): EngineReading {
  return {
    release: strictest(old.release, current.release),
    read: (text, context) => (context.engineVersion === "0.24" ? old : current).read(text, context),
  };
}

function strictest(left: ReleaseRule, right: ReleaseRule): ReleaseRule {
  const startStop = left.startStop ?? right.startStop;
  return {
    stops: [...new Set([...left.stops, ...right.stops])],
    strips: left.strips === true || right.strips === true,
    holdsAll: left.holdsAll === true || right.holdsAll === true,
    mayRewrite: left.mayRewrite === true || right.mayRewrite === true,
    dropsBreaks: left.dropsBreaks === true || right.dropsBreaks === true,
    ...(startStop !== undefined && { startStop }),
  };
}

/** Returns a call's name, which must be a string. */
export function asName(value: unknown): string {
  if (typeof value === "string") return value;
  throw new PythonError("ValueError", "the name of a call is not a string");
}

import { PythonError } from "../../python/python-error.ts";
import type { EngineReading } from "../grammar.ts";
import type { ParseContext } from "../parse-context.ts";
import type { ReleaseRule } from "../tool-call-stream.ts";

/** What one of vLLM's parsers finds. */
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
  /** What a stream may release before the end. */
  readonly release: ReleaseRule;
  /** `undefined` where nothing is called and the text stays as it is. */
  extract(text: string, context: ParseContext): VllmExtraction | undefined;
}

/**
 * How vLLM's serving code uses a parser: calls are numbered in their order, unknown tools are handed
 * on unless the parser itself drops them, and whatever goes wrong leaves the text as it is.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/abstract_tool_parser.py`.
 */
export function vllmReading(parser: VllmParser): EngineReading {
  return {
    release: parser.release,
    read(text, context) {
      const { content, calls } = parser.extract(text, context) ?? { content: text, calls: [] };
      return {
        normalText: content,
        calls: calls.map((call, toolIndex) => ({ ...call, toolIndex })),
      };
    },
  };
}

/** A reading that 0.33 brought: an older release is read as that one. */
export function sinceVllm033(reading: EngineReading): EngineReading {
  return {
    release: reading.release,
    read: (text, context) => reading.read(text, { ...context, engineVersion: "0.33" }),
  };
}

/** A reading that changed with 0.33; a stream keeps to what both readings allow. */
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
    strips: left.strips || right.strips,
    holdsAll: left.holdsAll === true || right.holdsAll === true,
    mayRewrite: left.mayRewrite === true || right.mayRewrite === true,
    dropsBreaks: left.dropsBreaks === true || right.dropsBreaks === true,
    ...(startStop !== undefined && { startStop }),
  };
}

/** The value as a call's name, which must be text. */
export function asName(value: unknown): string {
  if (typeof value === "string") return value;
  throw new PythonError("ValueError", "the name of a call is no string");
}

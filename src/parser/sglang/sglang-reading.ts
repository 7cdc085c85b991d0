import { isSince } from "../engine-version.ts";
import type { SglangVersion } from "../engine-version.ts";
import type { EngineReading, EngineResult } from "../grammar.ts";
import type { ParseContext } from "../parse-context.ts";
import { sglangVersion } from "./sglang-version.ts";
import type { ReleaseRule } from "../tool-call-stream.ts";

/** One of SGLang's detectors. */
export interface SglangDetector {
  /** What a stream may release before the end. */
  readonly release: ReleaseRule;
  /** Whether calls are found without tools, as since 0.5.23. Default false. */
  readonly needsNoTools?: boolean;
  /** Whether the text holds the format's start marker. */
  hasToolCall(text: string, version: SglangVersion): boolean;
  /** Throws `PythonError` where the detector raises. */
  detect(text: string, context: ParseContext): EngineResult;
}

/**
 * How SGLang's `FunctionCallParser.parse_non_stream` wraps a detector: since 0.5.6 a request without
 * tools is not parsed; where nothing was called the text comes back whole, but since July 2026 only
 * if the start marker is absent.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/function_call_parser.py`.
 */
export function sglangReading(detector: SglangDetector): EngineReading {
  return {
    release: detector.release,
    read(text, context) {
      const version = sglangVersion(context);
      const readsAnyway = detector.needsNoTools === true && isSince(version, "0.5.23");
      if (context.tools.length === 0 && isSince(version, "0.5.6") && !readsAnyway) {
        return { normalText: text, calls: [] };
      }
      const result = detector.detect(text, context);
      if (result.calls.length > 0) return result;
      const keepsResult = isSince(version, "2026-08") && detector.hasToolCall(text, version);
      return keepsResult ? result : { normalText: text, calls: [] };
    },
  };
}

import { defaultEngineVersion, isSince } from "../engine-version.ts";
import type { SglangVersion } from "../engine-version.ts";
import type { EngineReading, EngineResult } from "../grammar.ts";
import type { ParseContext } from "../parse-context.ts";
import type { ReleaseRule } from "../tool-call-stream.ts";

/** One of SGLang's detectors. */
export interface SglangDetector {
  /** What a stream may release before the end. */
  readonly release: ReleaseRule;
  /** Whether the text holds the format's start marker. */
  hasToolCall(text: string, version: SglangVersion): boolean;
  /** Throws `PythonError` where the detector raises. */
  detect(text: string, context: ParseContext): EngineResult;
}

/** The SGLang release that is wanted; the default one where the dialect is another engine's. */
export function sglangVersion({ dialect, engineVersion }: ParseContext): SglangVersion {
  const version = dialect === "sglang" ? engineVersion : defaultEngineVersion.sglang;
  return version as SglangVersion;
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
      if (context.tools.length === 0 && isSince(version, "0.5.6")) {
        return { normalText: text, calls: [] };
      }
      const result = detector.detect(text, context);
      if (result.calls.length > 0) return result;
      const keepsResult = isSince(version, "2026-08") && detector.hasToolCall(text, version);
      return keepsResult ? result : { normalText: text, calls: [] };
    },
  };
}

import type { EngineReading, EngineResult } from "../grammar.ts";
import type { ParseContext } from "../parse-context.ts";
import { catchPython } from "../shared/python/python-catch.ts";
import type { ReleaseRule } from "../tool-call-stream.ts";
import { isSince } from "../engine-version.ts";
import { sglangVersion } from "./sglang-version.ts";

/** One of SGLang's detectors. */
export interface SglangDetector {
  /** The literal that `has_tool_call()` looks for. Required unless `release` and `hasToolCall` are given. */
  readonly marker?: string;
  /** True if the detector strips the text before the first call. Default false. */
  readonly strips?: boolean;
  /** The text that a stream may release before its end. Default: everything before the marker. */
  readonly release?: ReleaseRule;
  /** True if the detector also reads requests without tools, since 0.5.23. Default false. */
  readonly needsNoTools?: boolean;
  /** True if any exception in the detector makes the whole turn plain text. Default false. */
  readonly catchesAll?: boolean;
  /** True if the text contains the start of a call. Default: it contains the marker. */
  readonly hasToolCall?: (text: string, context: ParseContext) => boolean;
  /** Reads the calls. @throws PythonError if the detector raises. */
  readonly detect: (text: string, context: ParseContext) => EngineResult;
}

/**
 * Wraps a detector as SGLang's `FunctionCallParser.parse_non_stream` does. Since 0.5.6 a request
 * without tools is not parsed. If the detector reports no call, the whole text is returned; since
 * July 2026 only if the start marker is absent as well.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/function_call_parser.py`.
 */
export function sglangReading(detector: SglangDetector): EngineReading {
  const { marker = "", strips = false, needsNoTools = false, catchesAll = false } = detector;
  const { hasToolCall = (text) => text.includes(marker) } = detector;
  return {
    release: detector.release ?? { stops: [marker], strips },
    read(text, context) {
      const plain = { normalText: text, calls: [] };
      const version = sglangVersion(context);
      const isParsed =
        context.tools.length > 0 ||
        !isSince(version, "0.5.6") ||
        (needsNoTools && isSince(version, "0.5.23"));
      if (!isParsed) return plain;
      const detect = (): EngineResult => detector.detect(text, context);
      const result = catchesAll ? (catchPython(detect) ?? plain) : detect();
      if (result.calls.length > 0) return result;
      return isSince(version, "2026-08") && hasToolCall(text, context) ? result : plain;
    },
  };
}

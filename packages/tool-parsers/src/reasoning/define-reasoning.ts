import { assertInvariant } from "../../../python-values/src/support/index.ts";
import type { PyDict } from "../../../python-values/src/index.ts";
import { resolveEngineVersion, vllmVersions, type SglangVersion } from "../engine-version.ts";
import type { Dialect } from "../tool-call-parser.ts";
import type {
  ReasoningOptions,
  ReasoningParser,
  ReasoningResult,
  ReasoningStream,
} from "./reasoning-parser.ts";

/** The options of one parser call, with defaults filled in. */
export interface ReasoningContext {
  readonly version: SglangVersion;
  readonly isForced: boolean;
  readonly toolCallParserActive: boolean;
  readonly forceNonemptyContent: boolean;
  /** The requested reasoning effort. Absent if the request names none. */
  readonly reasoningEffort?: string;
  /** The model's own `response_template`. */
  readonly responseTemplate?: PyDict;
}

/** One reasoning format, and how each engine splits a text by it. */
interface ReasoningFormat {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly markers: readonly string[];
  /** The literal that closes the reasoning, for a format in which it appears once, between two literals. */
  readonly closer?: string;
  /**
   * The rule for whether the text begins inside the reasoning: `always` says yes for any request, `by-default` says yes
   * unless the request says otherwise, `never` says no for any request. Default: yes only if the request says so.
   */
  readonly forced?: "always" | "by-default" | "never";
  /** True if the reasoning can become the normal text when the normal text is empty. Default true. */
  readonly canSwap?: boolean;
  /** True if this happens without being requested. Default false. */
  readonly swapsByDefault?: boolean;
  /**
   * Splits a text as SGLang does. Absent if SGLang has no such parser; the text is then split as
   * vLLM does.
   */
  readonly split?: (text: string, context: ReasoningContext) => ReasoningResult;
  /** Splits a text as vLLM does. Default: as SGLang does. */
  readonly splitAsVllm?: (
    text: string,
    context: Pick<ReasoningOptions, "toolCallParserActive">,
  ) => ReasoningResult;
  /** Splits a text in pieces. Without it, a stream holds back the complete text until the end. */
  readonly createSplitter?: (context: ReasoningContext) => ReasoningStream | undefined;
}

/** Makes the parser of a reasoning format. */
export function defineReasoning(format: ReasoningFormat): ReasoningParser {
  return {
    name: format.name,
    aliases: format.aliases ?? [],
    dialects: dialectsOf(format),
    markers: format.markers,
    ...(format.closer !== undefined && { closer: format.closer }),
    parse: (text, options = {}) => splitterOf(format, options)(text),
    createStream: (options = {}) => {
      const split = splitterOf(format, options);
      const isSglang = !readsAsVllm(format, options);
      const inPieces =
        isSglang && !swaps(format, options)
          ? format.createSplitter?.(contextOf(format, options))
          : undefined;
      return inPieces ?? createHoldingStream(split);
    },
  };
}

function dialectsOf({ split, splitAsVllm }: ReasoningFormat): readonly Dialect[] {
  return [
    ...(split === undefined ? [] : (["sglang"] as const)),
    ...(splitAsVllm === undefined ? [] : (["vllm"] as const)),
  ];
}

function readsAsVllm(
  { split, splitAsVllm }: ReasoningFormat,
  { dialect }: ReasoningOptions,
): boolean {
  return splitAsVllm !== undefined && (dialect === "vllm" || split === undefined);
}

function splitterOf(
  format: ReasoningFormat,
  options: ReasoningOptions,
): (text: string) => ReasoningResult {
  const { split, splitAsVllm } = format;
  if (splitAsVllm !== undefined && readsAsVllm(format, options)) {
    return (text) => splitAsVllm(text, options);
  }
  assertInvariant(split !== undefined, "A reasoning format is read by one engine at least");
  const context = contextOf(format, options);
  return (text) => {
    const result = split(text, context);
    return swaps(format, options) ? swapEmpty(result) : result;
  };
}

function contextOf(format: ReasoningFormat, options: ReasoningOptions): ReasoningContext {
  const isForced =
    format.forced === "always" ||
    (format.forced !== "never" && (options.forceReasoning ?? format.forced === "by-default"));
  return {
    version: versionOf(options),
    isForced,
    toolCallParserActive: options.toolCallParserActive ?? false,
    forceNonemptyContent: options.forceNonemptyContent ?? false,
    ...(options.reasoningEffort !== undefined && { reasoningEffort: options.reasoningEffort }),
    ...(options.responseTemplate !== undefined && { responseTemplate: options.responseTemplate }),
  };
}

/**
 * Returns the SGLang release to split as. For a vLLM release it is SGLang's default release, if the
 * format has no vLLM behaviour of its own.
 */
function versionOf({ dialect = "sglang", engineVersion }: ReasoningOptions): SglangVersion {
  const isOfVllm = dialect === "vllm" && vllmVersions.some((known) => known === engineVersion);
  return resolveEngineVersion("sglang", isOfVllm ? undefined : engineVersion) as SglangVersion;
}

function swaps(format: ReasoningFormat, { forceNonemptyContent }: ReasoningOptions): boolean {
  return (forceNonemptyContent ?? format.swapsByDefault ?? false) && format.canSwap !== false;
}

function swapEmpty(result: ReasoningResult): ReasoningResult {
  if (result.normalText !== "") return result;
  return { reasoning: "", normalText: result.reasoning };
}

/** Makes a stream that releases nothing before the end. */
function createHoldingStream(split: (text: string) => ReasoningResult): ReasoningStream {
  const chunks: string[] = [];
  return {
    push(chunk) {
      chunks.push(chunk);
      return { reasoning: "", normalText: "" };
    },
    end: () => split(chunks.join("")),
  };
}

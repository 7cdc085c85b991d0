import { assertInvariant } from "../../errors.ts";
import type { PyDict } from "../../python/value.ts";
import type { SglangVersion } from "../engine-version.ts";
import { resolveEngineVersion, vllmVersions } from "../engine-version.ts";
import type { Dialect } from "../tool-call-parser.ts";
import type {
  ReasoningOptions,
  ReasoningParser,
  ReasoningResult,
  ReasoningStream,
} from "./reasoning-parser.ts";

/** The options of one parser call, with nothing left open. */
export interface ReasoningContext {
  readonly version: SglangVersion;
  readonly isForced: boolean;
  readonly toolCallParserActive: boolean;
  readonly forceNonemptyContent: boolean;
  /** How hard the model was asked to think; absent where nothing was said. */
  readonly reasoningEffort?: string;
  /** The model's own `response_template`. */
  readonly responseTemplate?: PyDict;
}

/** How a format parts a text. */
interface ReasoningFormat {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly markers: readonly string[];
  /** Literal that closes the reasoning, where it stands once, between two literals. */
  readonly closer?: string;
  /** True if the text begins inside the reasoning: `always` whatever is asked, or by default. */
  readonly forced?: "always" | "by-default" | "never";
  /** True if reasoning can be made the normal text where that is empty. Default true. */
  readonly canSwap?: boolean;
  /** True if it is made so unless something else is asked. Default false. */
  readonly swapsByDefault?: boolean;
  /** How SGLang parts a text; absent where it has no such parser, and the text is parted as vLLM does. */
  readonly split?: (text: string, context: ReasoningContext) => ReasoningResult;
  /** How vLLM parts it. Default: as SGLang does. */
  readonly splitAsVllm?: (
    text: string,
    context: Pick<ReasoningOptions, "toolCallParserActive">,
  ) => ReasoningResult;
  /** Parts a text in pieces; where there is none, the whole text is held back until its end. */
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

/** What is read as SGLang does where vLLM has no reading of its own is read as its default release does. */
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

/** A stream that can say nothing before it has seen everything. */
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

import type { Dialect } from "./tool-call-parser.ts";

/** The parsers that fit a model. A name is absent if the template does not determine it. */
export interface ParserChoice {
  /** A name that `findToolCallParser()` knows. */
  readonly toolCallParser?: string;
  /** A name that `findReasoningParser()` knows. */
  readonly reasoningParser?: string;
}

/** Parsers, and the engine that they reproduce. */
export interface ParserSettings extends ParserChoice {
  /**
   * The engine that the parsers reproduce. Default: the dialect of `servedBy` if the parser has it, and otherwise the
   * parser's first dialect.
   */
  readonly dialect?: Dialect;
  /** The engine that samples. Default `sglang`. */
  readonly servedBy?: Dialect;
  /** The release of the engine. Default: the dialect's default release. */
  readonly engineVersion?: string;
}

/** A parser, and the texts that a template must contain, and must not contain, to select it. */
interface Rule {
  readonly parser: string;
  readonly holds: readonly (string | RegExp)[];
  readonly lacks?: readonly (string | RegExp)[];
}

/**
 * The rules in the order in which they are tried. The first match decides, so formats that borrow
 * tags from others come first.
 */
const toolCallRules: readonly Rule[] = [
  { parser: "apertus2509", holds: ["<|tools_prefix|>"] },
  { parser: "inkling", holds: ["<|content_invoke_tool_json|>"] },
  { parser: "muse", holds: ["<atem:"] },
  { parser: "kimi_k3", holds: [/<\|open\|>|XTML/, /tools/, "<|sep|>"] },
  { parser: "kimi_k2", holds: ["<|tool_calls_section_begin|>"] },
  { parser: "beam", holds: ["<|constrain|>xml<|message|>"] },
  { parser: "gpt-oss", holds: ["<|channel|>", "<|message|>", /commentary/] },
  { parser: "gemma4", holds: ["<|tool_call>", "<tool_call|>"] },
  { parser: "minimax-m3", holds: ["]<]minimax[>["] },
  { parser: "minimax-m2", holds: ["<minimax:tool_call>"] },
  { parser: "dots", holds: ["<dots_function_call>"] },
  { parser: "functiongemma", holds: ["<start_function_call>"] },
  { parser: "gigachat35", holds: ["<｜GCML｜tool_calls>"] },
  { parser: "iquest_q1", holds: ["<iquest_tool_call>"] },
  { parser: "k2_horizon", holds: ["<ifm|tool_call>"] },
  { parser: "plamo3", holds: ["<|plamo:begin_tool_request"] },
  { parser: "longcat", holds: ["<longcat_tool_call>"] },
  { parser: "seed_oss", holds: ["<seed:tool_call>"] },
  { parser: "deepseekv41", holds: ["<｜DSML｜ calls>"] },
  { parser: "deepseekv4", holds: ["｜DSML｜", /tool_calls/], lacks: [/function_calls/] },
  { parser: "deepseekv32", holds: ["｜DSML｜", /function_calls/] },
  { parser: "deepseekv3", holds: ["<｜tool▁calls▁begin｜>", "```json"] },
  { parser: "deepseekv31", holds: ["<｜tool▁calls▁begin｜>", "<｜tool▁sep｜>"] },
  { parser: "step3", holds: ["<steptml:invoke"] },
  { parser: "interns1", holds: ["<|action_start|> <|plugin|>"] },
  { parser: "cohere_command4", holds: ["<|START_ACTION|>"] },
  { parser: "gigachat3", holds: [/<\|function_call\|>|'role': 'function call'/] },
  { parser: "lfm2", holds: [/<\|tool_call_start\|>|<\|tool_list_start\|>/] },
  { parser: "mistral", holds: ["[TOOL_CALLS]"] },
  { parser: "minicpm5", holds: [/<function\s+name=/, /<param\s+name=/] },
  { parser: "hunyuan", holds: [/<tool_calls[{>]/, /<tool_sep[{>]/] },
  {
    parser: "poolside_v1",
    holds: ["<arg_key>", /unescaped XML-like object|All available function signatures/],
  },
  { parser: "glm47", holds: [/<tool_call>\{function-name\}<arg_key>/] },
  { parser: "glm45", holds: ["<tool_call>", "<arg_key>"] },
  { parser: "qwen3_coder", holds: ["<tool_call>", "<function=", "<parameter="] },
  { parser: "qwen25", holds: [/<tool_call>(?:\n|\\n)\s*\{/] },
  {
    parser: "hermes",
    holds: ["<tool_call>", "</tool_call>", '"arguments"'],
    lacks: ["<tool_calls>"],
  },
  { parser: "llama3", holds: [/\{\\?"name\\?": ?function name, ?\\?"parameters\\?"/] },
  { parser: "pythonic", holds: [/\[func_name1\(param/] },
];

const reasoningRules: readonly Rule[] = [
  { parser: "apertus2509", holds: ["<|inner_prefix|>"] },
  { parser: "inkling", holds: ["<|content_thinking|>"] },
  { parser: "muse", holds: ["<atem:", "to=self"] },
  { parser: "kimi_k3", holds: [/<\|open\|>|XTML/, /think/, "<|sep|>"] },
  { parser: "beam", holds: ["<|constrain|>xml<|message|>"] },
  { parser: "gpt-oss", holds: ["<|channel|>analysis"] },
  { parser: "iquest_q1", holds: ["<iquest_tool_call>", "<think>"] },
  { parser: "k2_horizon", holds: ["<ifm|think>"] },
  { parser: "gemma4", holds: ["<|channel>"] },
  { parser: "kimi", holds: ["◁think▷"] },
  { parser: "mistral", holds: ["[THINK]"] },
  { parser: "minimax-m3", holds: ["]<]minimax[>["] },
  { parser: "cohere_command4", holds: ["<|START_THINKING|>", "<|START_TEXT|>"] },
  { parser: "hunyuan", holds: [/<tool_sep[{>]/, /<think[{>]/], lacks: [/<function\s+name=/] },
  { parser: "kimi_k2", holds: ["<think>", "<|tool_calls_section_begin|>"] },
  { parser: "interns1", holds: ["<think>", "default_thinking_sys"] },
  { parser: "nemotron_3", holds: ["<think>", "truncate_history_thinking"] },
  { parser: "poolside_v1", holds: ["<think>", "<arg_key>", /unescaped XML|All available/] },
  { parser: "glm45", holds: ["<think>", "[gMASK]<sop>"] },
  { parser: "minimax", holds: ["<think>", "<minimax:tool_call>"] },
  { parser: "step3", holds: ["<steptml:invoke", "<think>"] },
  {
    parser: "deepseek-v4",
    holds: ["｜DSML｜", /tool_calls/, "<think>"],
    lacks: [/function_calls/],
  },
  { parser: "deepseek-v3", holds: ["</think>", /｜DSML｜|<｜tool▁sep｜>/], lacks: ["```json"] },
  { parser: "deepseek-r1", holds: ["</think>", "<｜tool▁sep｜>"] },
  {
    parser: "qwen3-thinking",
    holds: [/assistant\\n<think>\\n/],
    lacks: ["enable_thinking", /\bthinking\b/],
  },
  { parser: "qwen3", holds: ["<think>"], lacks: ["<answer>", "<response>"] },
];

/** Formats that vLLM distinguishes and SGLang does not. They are tried before all others. */
const vllmToolCallRules: readonly Rule[] = [
  {
    parser: "cohere_command3",
    holds: ["<|START_ACTION|>", "<|START_RESPONSE|>"],
    lacks: ["<|START_TEXT|>"],
  },
];

const vllmReasoningRules: readonly Rule[] = [
  {
    parser: "cohere_command3",
    holds: ["<|START_THINKING|>", "<|START_RESPONSE|>"],
    lacks: ["<|START_TEXT|>"],
  },
];

/** The vLLM parser for a format that vLLM has under another name. */
const vllmParsers: Readonly<Partial<Record<string, string>>> = {
  "gpt-oss": "openai",
  qwen25: "hermes",
};

/**
 * Chooses the parsers that fit a model by the text of its chat template: by the markers that the
 * template writes around tool calls and reasoning. A name is absent if no rule matches. The names
 * are those of the engine that serves the model.
 */
export function chooseParser(templateSource: string, servedBy: Dialect = "sglang"): ParserChoice {
  const isVllm = servedBy === "vllm";
  const fit = firstFit([...(isVllm ? vllmToolCallRules : []), ...toolCallRules], templateSource);
  const toolCallParser = isVllm && fit !== undefined ? (vllmParsers[fit] ?? fit) : fit;
  const reasoningParser = firstFit(
    [...(isVllm ? vllmReasoningRules : []), ...reasoningRules],
    templateSource,
  );
  return {
    ...(toolCallParser !== undefined && { toolCallParser }),
    ...(reasoningParser !== undefined && { reasoningParser }),
  };
}

function firstFit(rules: readonly Rule[], source: string): string | undefined {
  const holds = (part: string | RegExp): boolean =>
    typeof part === "string" ? source.includes(part) : part.test(source);
  return rules.find((rule) => rule.holds.every(holds) && rule.lacks?.some(holds) !== true)?.parser;
}

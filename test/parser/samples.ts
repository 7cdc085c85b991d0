import { templateSamples } from "./response-templates.ts";

const cohere = (query: string): string =>
  `<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "search", "parameters": ` +
  `{"query": "${query}"}}]<|END_ACTION|>`;

/** The turn without its reasoning. */
const afterPlan = (turn: string): string => turn.slice(turn.indexOf("assistant") + 9);

/**
 * One call of the tool `search` with the text `query`, as models of each tool-call format write it,
 * by the parser's registry name. The query must need no escaping.
 */
export const callSamples: Readonly<Record<string, (query: string) => string>> = {
  beam: (query) => afterPlan(templateSamples["beam"]!.turn(query)),
  apertus2509: (query) => `<|tools_prefix|>[{"search": {"query": "${query}"}}]<|tools_suffix|>`,
  cohere_command3: (query) => cohere(query),
  cohere_command4: (query) => cohere(query),
  deepseekv3: (query) =>
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>search\n\`\`\`json\n` +
    `{"query": "${query}"}\n\`\`\`<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  deepseekv31: (query) =>
    `<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>search<｜tool▁sep｜>{"query": "${query}"}` +
    `<｜tool▁call▁end｜><｜tool▁calls▁end｜>`,
  deepseekv32: (query) => dsml("function_calls", query),
  deepseekv4: (query) => dsml("tool_calls", query),
  deepseekv41: (query) =>
    dsml(" calls", query)
      .replaceAll("｜invoke", "｜ invoke")
      .replaceAll("｜parameter", "｜ parameter"),
  dots: (query) =>
    `<dots_function_call>\n<invoke name="search">\n<parameter name="query">${query}</parameter>\n` +
    `</invoke>\n</dots_function_call>`,
  gemma4: (query) => `<|tool_call>call:search{query:<|"|>${query}<|"|>}<tool_call|>`,
  gigachat3: (query) => `<|function_call|>{"name": "search", "arguments": {"query": "${query}"}}`,
  gigachat35: (query) =>
    `<｜GCML｜tool_calls>\n<｜GCML｜invoke name="search">\n` +
    `<｜GCML｜parameter name="query" string="true">${query}</｜GCML｜parameter>\n` +
    `</｜GCML｜invoke>\n</｜GCML｜tool_calls>`,
  glm45: (query) =>
    `<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>${query}</arg_value>\n</tool_call>`,
  glm47: (query) =>
    `<tool_call>search<arg_key>query</arg_key><arg_value>${query}</arg_value></tool_call>`,
  "gpt-oss": (query) =>
    `<|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>` +
    `{"query": "${query}"}<|call|>`,
  openai: (query) =>
    `<|channel|>commentary to=functions.search <|constrain|>json<|message|>` +
    `{"query": "${query}"}<|call|>`,
  hermes: jsonInTags,
  hunyuan: (query) =>
    `<tool_calls>\n<tool_call>search<tool_sep>\n<arg_key>query</arg_key>\n` +
    `<arg_value>${query}</arg_value>\n</tool_call>\n</tool_calls>`,
  inkling: (query) =>
    `<|message_model|>search<|content_invoke_tool_json|>` +
    `{"name": "search", "args": {"query": "${query}"}}<|end_message|>`,
  interns1: (query) =>
    `<|action_start|> <|plugin|>\n{"name": "search", "parameters": {"query": "${query}"}}` +
    `<|action_end|>`,
  iquest_q1: (query) =>
    `<iquest_tool_call>search<arg_key>query</arg_key><arg_value>${query}</arg_value></iquest_tool_call>`,
  k2_horizon: (query) =>
    `<ifm|tool_calls>\n<ifm|tool_call>search\n<ifm|arg_key>query</ifm|arg_key>\n` +
    `<ifm|arg_value>${query}</ifm|arg_value>\n</ifm|tool_call>\n</ifm|tool_calls>`,
  kimi_k2: (query) =>
    `<|tool_calls_section_begin|><|tool_call_begin|>functions.search:0` +
    `<|tool_call_argument_begin|>{"query": "${query}"}<|tool_call_end|><|tool_calls_section_end|>`,
  kimi_k3: (query) =>
    `<|open|>tools<|sep|><|open|>call tool="search" index="1"<|sep|>` +
    `<|open|>argument key="query" type="string"<|sep|>${query}<|close|>argument<|sep|>` +
    `<|close|>call<|sep|><|close|>tools<|sep|>`,
  lfm2: (query) => `<|tool_call_start|>[search(query="${query}")]<|tool_call_end|>`,
  ling3: (query) =>
    `<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>${query}</arg_value>\n</tool_call>`,
  llama3: (query) => `<|python_tag|>{"name": "search", "parameters": {"query": "${query}"}}`,
  llama4_pythonic: (query) => `<|python_start|>[search(query="${query}")]<|python_end|>`,
  mimo: (query) =>
    `<tool_call><function=search><parameter=query>${query}</parameter></function></tool_call>`,
  minicpm5: (query) => `<function name="search"><param name="query">${query}</param></function>`,
  "minimax-m2": (query) =>
    `<minimax:tool_call>\n<invoke name="search">\n<parameter name="query">${query}</parameter>\n` +
    `</invoke>\n</minimax:tool_call>`,
  "minimax-m3": (query) =>
    `]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name="search">` +
    `]<]minimax[>[<query>${query}]<]minimax[>[</query>]<]minimax[>[</invoke>\n` +
    `]<]minimax[>[</tool_call>`,
  mistral: (query) => `[TOOL_CALLS] [{"name": "search", "arguments": {"query": "${query}"}}]`,
  muse: atem,
  muse_glimmer: atem,
  poolside_v1: (query) =>
    `<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>${query}</arg_value>\n</tool_call>`,
  pythonic: (query) => `[search(query="${query}")]`,
  response_template: (query) => afterPlan(templateSamples["beam"]!.turn(query)),
  qwen25: jsonInTags,
  qwen3_coder: functionInTags,
  spark25: (query) =>
    `<tool_call>search\n<arg_key>query</arg_key><arg_value>${query}</arg_value>\n</tool_call>`,
  step3: (query) =>
    `<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>` +
    `<steptml:invoke name="search">\n<steptml:parameter name="query">${query}` +
    `</steptml:parameter>\n</steptml:invoke><｜tool_call_end｜>\n<｜tool_calls_end｜>`,
  step3p5: functionInTags,
  trinity: jsonInTags,
  ernie45: jsonInTags,
  functiongemma: (query) =>
    `<start_function_call>call:search{query:<escape>${query}<escape>}<end_function_call>`,
  granite: (query) => `<|tool_call|> [${jsonCall(query)}]`,
  "granite-20b-fc": (query) => `<function_call> ${jsonCall(query)}`,
  granite4: jsonInTags,
  hunyuan_a13b: (query) => `<tool_calls>[${jsonCall(query)}]</tool_calls>`,
  internlm: (query) =>
    `<|action_start|><|plugin|>\n{"name": "search", "parameters": {"query": "${query}"}}<|action_end|>`,
  jamba: (query) => `<tool_calls>[\n    ${jsonCall(query)}\n]</tool_calls>`,
  longcat: (query) => `<longcat_tool_call>${jsonCall(query)}</longcat_tool_call>`,
  olmo3: (query) => `<function_calls>search(query="${query}")</function_calls>`,
  phi4_mini_json: (query) => `functools[${jsonCall(query)}]`,
  hy_v4: (query) =>
    `<tool_calls>\n<tool_call>search<arg_key>query</arg_key>` +
    `<arg_value>${query}</arg_value></tool_call>\n</tool_calls>`,
  plamo3: (query) =>
    plamo(
      "tool_requests",
      plamo(
        "tool_request",
        plamo("tool_name", "search") +
          plamo("tool_arguments", `<|plamo:constrain|>json<|plamo:msg|>{"query": "${query}"}`),
      ),
    ),
  step5: functionInTags,
  seed_oss: (query) => functionInTags(query).replaceAll("tool_call>", "seed:tool_call>"),
  xlam: (query) => `[${jsonCall(query)}]`,
};

function jsonCall(query: string): string {
  return `{"name": "search", "arguments": {"query": "${query}"}}`;
}

function jsonInTags(query: string): string {
  return `<tool_call>\n{"name": "search", "arguments": {"query": "${query}"}}\n</tool_call>`;
}

function functionInTags(query: string): string {
  return (
    `<tool_call>\n<function=search>\n<parameter=query>\n${query}\n</parameter>\n` +
    `</function>\n</tool_call>`
  );
}

function plamo(tag: string, inner: string): string {
  return `<|plamo:begin_${tag}:plamo|>${inner}<|plamo:end_${tag}:plamo|>`;
}

function dsml(section: string, query: string): string {
  return (
    `<｜DSML｜${section}>\n<｜DSML｜invoke name="search">\n` +
    `<｜DSML｜parameter name="query" string="true">${query}</｜DSML｜parameter>\n` +
    `</｜DSML｜invoke>\n</｜DSML｜${section}>`
  );
}

function atem(query: string): string {
  return (
    `<|start|>assistant to=search<|message|><atem:function_calls>\n<atem:invoke name="search">\n` +
    `<atem:parameter name="query">${query}</atem:parameter>\n</atem:invoke>\n` +
    `</atem:function_calls><|eot|>`
  );
}

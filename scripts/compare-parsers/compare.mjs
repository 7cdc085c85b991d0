// Compares the parsers with those of a released SGLang or vLLM, one-shot, on generated texts.
//
//   python3 -m venv V && V/bin/pip install pydantic orjson partial-json-parser regex msgspec
//   V/bin/pip download --no-deps sglang==0.5.23 && unzip -q -d F sglang-*.whl
//   node scripts/compare-parsers/compare.mjs --dialect sglang --release 0.5.23 --folder F --python V/bin/python
//
// vLLM also needs: V/bin/pip install cohere_melody==0.15.3 oss-harmony==0.0.11. If oss-harmony cannot
// download its vocabulary, set TIKTOKEN_ENCODINGS_BASE to a folder with o200k_base.tiktoken.
//
// When an engine is released:
// 1. Unpack its wheel, and run this script with the newest --release that the parsers support.
// 2. Read the differences, parser by parser (--parser NAME --show 20).
// 3. Add an entry to packages/tool-parsers/src/engine-version.ts, and change the families that differ.
// 4. Add a family for each name that `--names` lists as missing; docs/parsers.md shows how.
// 5. Record texts with the results of the original (--record FILE) in test/parser/recorded/.
//
// Options: --count texts (20000), --seed (1), --kind tools|reasoning, --parser names with commas (all),
// --show (3), --vectors folder with recorded *-parsers-sglang.jsonl.gz to start from, --names,
// --record file. Ends with status 1 if a difference is not in known-differences.json.
import { spawn } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { gunzipSync } from "node:zlib";
import { build, isStale } from "../build.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const { values: given } = parseArgs({
  options: {
    dialect: { type: "string", default: "sglang" },
    release: { type: "string" },
    folder: { type: "string" },
    python: { type: "string", default: "python3" },
    count: { type: "string", default: "20000" },
    seed: { type: "string", default: "1" },
    kind: { type: "string", default: "tools" },
    parser: { type: "string" },
    show: { type: "string", default: "3" },
    vectors: { type: "string" },
    record: { type: "string" },
    names: { type: "boolean", default: false },
  },
});

if (isStale()) await build();
const dist = path.resolve(here, "../../dist");
const load = (file) => import(path.join(dist, file));
const { listToolCallParsers } = await load("packages/tool-parsers/src/registry.js");
const { listReasoningParsers } = await load("packages/tool-parsers/src/reasoning/registry.js");
const { toolsFromOpenAi } = await load("src/message.js");
const { toPyValue } = await load("packages/python-values/src/value.js");
const { mutate } = await load("test/parser/fuzz.js");
const { createRandom } = await load("test/parser/random.js");
const { callSamples, reasoningSamples } = await load("test/parser/samples.js");
const { templateSamples } = await load("test/parser/response-templates.js");

/** Runs the original parsers on each request and returns their results, in order. */
async function runOriginals(requests) {
  const child = spawn(
    given.python,
    [path.join(here, "originals.py"), given.dialect, given.folder],
    {
      stdio: ["pipe", "pipe", "inherit"],
    },
  );
  child.stdin.end(requests.map((request) => `${JSON.stringify(request)}\n`).join(""));
  let output = "";
  child.stdout.setEncoding("utf8");
  for await (const chunk of child.stdout) output += chunk;
  const results = output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  if (results.length !== requests.length) throw new Error("Cannot compare: the originals stopped");
  return results;
}

const tool = (name, properties) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties } },
});

/** Tools with a parameter of every type that the formats convert values to. */
const sampleTools = [
  tool("search", {
    query: { type: "string" },
    count: { type: "integer" },
    ratio: { type: "number" },
    deep: { type: "boolean" },
    tags: { type: "array", items: { type: "string" } },
    options: { type: "object" },
    maybe: { type: ["integer", "null"] },
    either: { anyOf: [{ type: "string" }, { type: "null" }] },
    kind: { enum: ["a", "b"] },
  }),
  { type: "function", function: { name: "ping" } },
  {
    type: "function",
    function: {
      name: "union",
      parameters: {
        anyOf: [
          { properties: { kind: { const: "x" }, query: { type: "integer" }, count: {} } },
          { properties: { kind: { enum: ["7", 8] }, query: { type: ["string", "null"] } } },
          { $ref: "#/$defs/third" },
        ],
        $defs: { third: { properties: { query: { type: "string" }, tags: { type: "array" } } } },
      },
    },
  },
];

function sampleTexts(sample) {
  if (sample === undefined) return [];
  const one = sample("green tea");
  const values = ["3", "1.5", "true", "null", '["a", 2]', '{"k": [null]}', "x", ""];
  const keys = ["count", "ratio", "deep", "maybe", "tags", "options", "either", "kind", "other"];
  const renamed = keys.flatMap((key, index) => [
    sample(values[index % values.length]).replaceAll("query", key),
    sample(values[(index * 3) % values.length]).replaceAll("query", key),
  ]);
  const ping = one.replaceAll("search", "ping");
  const union = [...values, "8", "'8'"].map((value) => sample(value).replace("search", "union"));
  return [
    ...union,
    one,
    one + one,
    `Hi. ${one}\n${ping} Bye.`,
    one.replace("search", "unknown"),
    ...renamed,
  ];
}

/** Texts that no sample leads to, by parser. */
const moreTexts = {
  lfm2: [
    `[search(query='sed -n '3,4p' f', count=07), ping(from=1)]`,
    `[search(query="a "b" c", in='x'), search(query=f'x', tags={1, 2})]`,
    `[search(query='a\nb', **{'count': 1}), search(ratio=1e999), ping()]`,
    `[search(query='it's'), search(query=b'x'), ping(class = "'")]`,
  ].map((calls) => `<|tool_call_start|>${calls}<|tool_call_end|>`),
  inkling: [
    "search<|content_thinking|>plan<|end_message|><|message_model|><|content_text|>Hi.<|end_message|>",
    '<|message_model|>f<|content_invoke_tool_json|>{"args": {"query": "a", "count": "3"}, "name": "search"}<|end_message|> <|message_model|><|content_text|>Bye.<|content_model_end_sampling|>',
    '<|content_invoke_tool_json|>{"name": "search", "arguments": {"count": "3"}}<|end_message|>\n',
    '<|content_invoke_tool_json|>{"name": "search", "args": [1]}<|content_tool_error|>',
    " <|content_invoke_tool_text|>x<|end_message|>",
  ],
  ...Object.fromEntries(
    ["muse", "muse_glimmer"].map((name) => [
      name,
      [
        "<|start|>assistant to=self<|message|>plan<|eom|><|start|>assistant to=user<|message|>Hi.<|eot|>",
        ' to=self<|message|>plan<|start|>assistant\tto=search.search<|message|><atem:invoke name="search.search"><atem:parameter name="count">3</atem:parameter></atem:invoke><|eom|>',
        "<|message|>Hi.<|eom|><|start|>assistant to=commentary<|message|>Hm.<|eom|>",
        '<atem:invoke x="1" name="ping"></atem:invoke>',
        ' to=commentary<|message|>Hm. <atem:invoke name="ping"></atem:invoke><|eom|><|start|>assistant to=user<|message|>Hi.<|eot|>',
      ],
    ]),
  ),
  ...Object.fromEntries(
    [
      ["cohere_command3", "RESPONSE"],
      ["cohere_command4", "TEXT"],
    ].map(([name, section]) => [
      name,
      [
        `<|START_THINKING|> plan <co>what</co: 0:[1]> <|END_THINKING|> <|START_${section}|> Hi <co>foo</co: 0:[1,2],1:[0]> and <co>bar</co: 1:[0]>. <|END_${section}|>`,
        `plan<|END_THINKING|><|START_${section}|>Hi <co>foo, <comb>x</co: 0> </co`,
        `<|START_THINKING|>  <|END_THINKING|> Hi<|START_ACTION|>[\n    {"tool_call_id": "0", "tool_name": "search", "parameters": {\n            "query": "a",\n                "count": 3\n        }},\n    {"tool_call_id": "1", "tool_name": "ping", "parameters": {}}\n]<|END_ACTION|>`,
        '<|START_THINKING|>plan<|END_THINKING|><|START_ACTION|>[{"tool_call": "0", "tool_name": "search", "parameters": {"query": "\\ud83d\\ude00 \\"x\\"", "ratio": -1.5e3}}, {"tool_call_id": 1, "tool_name": "ping", "parameters": null}]<|END_ACTION|> Bye.',
        '<|START_ACTION|>[{"tool_call_id": "0", "tool_name": "search", "parameters": [1, {"query": "x"}]}, {"tool_call_id": "1", "tool_name": "ping", "parameters": -12}, {"tool_call_id": "2", "tool_name": "ping", "parameters": {"a": "b"}}]',
      ],
    ]),
  ),
  openai: [
    "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>Hi.<|return|>",
    '<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>commentary<|message|>Look.<|end|><|start|>assistant<|channel|>commentary to=functions.search <|constrain|>json<|message|>{"query": "é 日", "count": 1e2}<|call|>',
    '<|channel|>analysis to=python code<|message|>print(1)<|end|><|start|>assistant to=functions.search<|channel|>commentary<|constrain|>json<|message|>{"count": NaN}<|call|><|start|>assistant to=search<|channel|>analysis<|message|>{}<|end|>',
    "<|channel|>final <|constrain|>json<|message|>{}<|start|>user<|message|>x<|end|><|start|>browser.open to=assistant<|channel|>commentary<|message|>y<|end|>",
    "plan<|end|>final<|message|>Hi.<|call|>x<|start|>assistant<|channel|><|message|>y",
  ],
  // Reasoning parsers without recorded texts.
  ling3: [
    "<think>plan</think>answer",
    "<think>plan<tool_call>f</tool_call>",
    "<think>plan</think>",
  ],
  iquest_q1: ["plan</think>answer", "<think>plan</think>\nanswer", "plan"],
  k2_horizon: [
    "plan</ifm|think>answer<ifm|tool_calls>",
    "<ifm|think>plan<ifm|tool_calls><ifm|tool_call>f",
    "plan</ifm|think_fast>answer",
  ],
  granite_thinking_parser: ["<think>plan\n</think>\n\nanswer", "<think>plan<tool_call>f", "answer"],
};

function vectorSeeds(kind) {
  if (given.vectors === undefined) return [];
  const files = [`${kind === "tools" ? "tool" : "reasoning"}-parsers-sglang.jsonl.gz`];
  if (kind === "tools") files.push("tool-parsers-vllm.jsonl.gz");
  return files.flatMap((file) => {
    const full = path.join(given.vectors, file);
    if (!existsSync(full)) return [];
    const lines = gunzipSync(readFileSync(full)).toString("utf8").trim().split("\n");
    return lines.flatMap((line) => {
      const { parser, input, chunks = [], tools } = JSON.parse(line);
      const named = (tools ?? []).filter((entry) => typeof entry.function?.name === "string");
      const text = input ?? chunks.join("");
      return parser.split("|").map((name) => ({ name, text, tools: named }));
    });
  });
}

function makeRequests(kind, parsers) {
  const random = createRandom(Number(given.seed));
  const recorded = vectorSeeds(kind);
  const samples = kind === "tools" ? callSamples : (reasoningSamples ?? {});
  const seedsOf = new Map(
    parsers.map((parser) => {
      const names = [parser.name, ...(parser.aliases ?? [])];
      const texts = [...sampleTexts(samples[parser.name]), ...(moreTexts[parser.name] ?? [])];
      const own = [
        ...texts.map((text) => ({ text, tools: sampleTools, ...ownTemplate(parser) })),
        ...templatesOf(parser).flatMap(([template, { turn }]) =>
          sampleTexts(turn).map((text) => ({ text, tools: sampleTools, template })),
        ),
      ];
      return [parser, [...own, ...recorded.filter(({ name }) => names.includes(name))]];
    }),
  );
  const everything = [...seedsOf.values()].flat();
  return Array.from({ length: Number(given.count) }, (_, index) => {
    const parser = parsers[index % parsers.length];
    const own = seedsOf.get(parser).length > 0 ? seedsOf.get(parser) : everything;
    const seed = random.pick(own);
    const other = () => random.pick(random.below(8) === 0 ? everything : own).text;
    const text = mutate(seed.text, random, other);
    const name = namesOf(parser).find((candidate) => theirs.includes(candidate));
    // Every second text of Mistral is read as one of a model with an older tokenizer.
    const isOld = name === "mistral" && Math.floor(index / parsers.length) % 2 === 1;
    const lacks = isOld ? ["[ARGS]"] : [];
    const template = seed.template === undefined ? {} : { template: templateOf(seed.template) };
    return { kind, parser: name, text, tools: seed.tools, lacks, ...template };
  });
}

/** The response template of a sample. SGLang has Beam's built in. */
function ownTemplate({ name }) {
  const hasOne = name === "beam" && given.dialect === "sglang";
  return templatesOf({ name }).length === 0 || hasOne ? {} : { template: "beam" };
}

/** The response templates that a parser is tried with. */
function templatesOf({ name }) {
  const all = Object.entries(templateSamples);
  if (name === "response_template") return all;
  return name === "beam" ? all.filter(([each]) => each === "beam") : [];
}

const templateOf = (name) => templateSamples[name].template;

const nameOf = (template) =>
  Object.keys(templateSamples).find((name) => templateOf(name) === template);

/** One object for each template, so that each template is read once. */
const readTemplates = new Map();

function readTemplate(template) {
  if (template === undefined) return {};
  const read = readTemplates.get(template) ?? toPyValue(template);
  readTemplates.set(template, read);
  return { responseTemplate: read };
}

/** The special tokens that decide between the formats of one parser. */
const vocabulary = ["[TOOL_CALLS]", "[ARGS]", "[THINK]"];

function runOurs({ kind, parser, text, tools, lacks, template }, parsers) {
  const found = parsers.find((candidate) => namesOf(candidate).includes(parser));
  if (kind === "reasoning") {
    const options = { dialect: given.dialect, ...readTemplate(template) };
    if (given.dialect === "sglang") options.engineVersion = given.release;
    const result = found.parse(text, options);
    return { reasoning: result.reasoning, normal: result.normalText };
  }
  const options = {
    tools: toolsFromOpenAi(toPyValue(tools), "tools"),
    dialect: given.dialect,
    engineVersion: given.release,
    vocabulary: vocabulary.filter((token) => !lacks.includes(token)),
    ...readTemplate(template),
  };
  const { compat } = found.parse(text, options);
  if (compat.raises) return { raises: true };
  const calls = compat.calls.map((call) => [call.name, call.argumentsText, call.toolIndex]);
  return { normal: compat.normalText, calls };
}

function isEqual(ours, original) {
  if (original.raises !== undefined) return ours.raises === true;
  return JSON.stringify(ours) === JSON.stringify(original);
}

const known = JSON.parse(readFileSync(path.join(here, "known-differences.json"), "utf8"));

function explain({ parser, text }, original) {
  return known.find(
    (entry) =>
      entry.dialect === given.dialect &&
      entry.parsers.includes(parser) &&
      new RegExp(entry.text ?? "", "u").test(text) &&
      (entry.raises === undefined || entry.raises === original.raises),
  );
}

const all = given.kind === "tools" ? listToolCallParsers() : listReasoningParsers();
const [names] = await runOriginals([{ list: true }]);
const theirs = names[given.kind];
const namesOf = (parser) => [parser.name, ...(parser.aliases ?? [])];
const offered = all.filter(
  (parser) =>
    (parser.dialects ?? ["sglang"]).includes(given.dialect) &&
    namesOf(parser).some((name) => theirs.includes(name)),
);
const ownNames = offered.flatMap(namesOf);
const missing = theirs.filter((name) => !ownNames.includes(name));
console.log(`${offered.length} parsers compared; missing here: ${missing.join(", ") || "none"}`);
if (given.names) process.exit(0);

const parsers = offered.filter(
  (parser) =>
    given.parser === undefined ||
    namesOf(parser).some((name) => given.parser.split(",").includes(name)),
);
const requests = makeRequests(given.kind, parsers);
const results = await runOriginals(requests);
if (given.record !== undefined) {
  // All texts use the same tools; a recording is made without --vectors.
  const { dialect, release } = given;
  const rows = requests.map(({ parser, text, lacks, template }, index) => ({
    parser,
    text,
    ...(template !== undefined && { template: nameOf(template) }),
    ...(lacks.length !== 0 && { lacks }),
    ...results[index],
  }));
  const lines = [{ dialect, release, tools: sampleTools }, ...rows].map((row) =>
    JSON.stringify(row),
  );
  writeFileSync(given.record, `${lines.join("\n")}\n`);
}
const differences = new Map();
const explained = new Map();
let withCalls = 0;
for (const [index, request] of requests.entries()) {
  const original = results[index];
  if (original.calls?.length > 0) withCalls += 1;
  if (original.raises === "Timeout") continue;
  const ours = runOurs(request, parsers);
  if (isEqual(ours, original)) continue;
  const reason = explain(request, original)?.reason;
  const [map, key] = reason === undefined ? [differences, request.parser] : [explained, reason];
  map.set(key, [...(map.get(key) ?? []), { request, original, ours }]);
}
for (const [parser, found] of differences) {
  console.log(`\n${parser}: ${found.length} differ`);
  const shortest = found.toSorted((a, b) => a.request.text.length - b.request.text.length);
  for (const { request, original, ours } of shortest.slice(0, Number(given.show))) {
    console.log(`  text     ${JSON.stringify(request.text)}`);
    console.log(`  original ${JSON.stringify(original)}\n  ours     ${JSON.stringify(ours)}`);
  }
}
for (const [reason, found] of explained) console.log(`\nexplained ${found.length}: ${reason}`);
const count = [...differences.values()].flat().length;
console.log(
  `\n${requests.length} texts, ${withCalls} with calls, ${count} unexplained differences`,
);
process.exit(count === 0 ? 0 : 1);

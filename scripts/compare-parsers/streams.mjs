// Lists the families in which SGLang's streaming parsers differ from its one-shot parsers: the table in
// docs/parsers.md. Needs the same wheel as compare.mjs, which says how to unpack it.
//
//   node scripts/compare-parsers/streams.mjs --folder F --python V/bin/python [--parser NAME]
//
// Texts are cut as tokens may cut them: into pieces of one character, of seven, and not at all. Calls
// are compared by name and arguments, and text without its white space.
import { spawn } from "node:child_process";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { build, isStale } from "../build.mjs";

const here = path.dirname(fileURLToPath(import.meta.url));
const { values: given } = parseArgs({
  options: {
    folder: { type: "string" },
    python: { type: "string", default: "python3" },
    parser: { type: "string" },
  },
});
if (isStale()) await build();
const load = (file) => import(path.resolve(here, "../../dist", file));
const { listToolCallParsers } = await load("packages/tool-parsers/src/registry.js");
const { listReasoningParsers } = await load("packages/tool-parsers/src/reasoning/registry.js");
const { callSamples } = await load("test/parser/samples.js");
const { templateSamples } = await load("test/parser/response-templates.js");

const properties = { query: { type: "string" } };
const tools = ["search", "ping"].map((name) => ({
  type: "function",
  function: { name, parameters: { type: "object", properties } },
}));
const [[, plainTemplate]] = Object.entries(templateSamples).filter(([name]) => name !== "beam");

function callTexts({ name }) {
  const sample = name === "response_template" ? plainTemplate.turn : callSamples[name];
  const one = sample("green tea");
  return {
    "a call": one,
    "text, then a call": `Hello there. ${one}`,
    "two calls": `${one}\n${one.replaceAll("search", "ping")}`,
    "an unknown tool": one.replaceAll("search", "unknown"),
    "a call that is cut off": one.slice(0, -6),
  };
}

function reasoningTexts({ markers: [open = "<think>"], closer = "</think>" }) {
  return {
    "reasoning and answer": `${open}plan one${closer}\n\nAnswer.`,
    "reasoning that is not closed": `${open}plan one`,
    "reasoning that the prompt opened": `plan one${closer}Answer.`,
    "an answer": "Answer only.",
    "reasoning without an answer": `${open}plan${closer}`,
  };
}

/** For each text, one request for the one-shot parser and three for the stream. */
function* requestsFor(kind, parser) {
  const texts = kind === "tools" ? callTexts(parser) : reasoningTexts(parser);
  const template = parser.name === "response_template" ? { template: plainTemplate.template } : {};
  for (const [what, text] of Object.entries(texts)) {
    const request = { kind, parser: parser.name, text, tools, what, ...template };
    yield request;
    for (const [size, pattern] of cuts) {
      yield { ...request, pieces: text.match(pattern), size };
    }
  }
}

/** The ways of cutting a text; "tokens" keeps tags and words in one piece, as tokens do. */
const cuts = [
  ["tokens", /\]<\]minimax\[>\[|<[|｜/]?[^<>\n]{1,40}>|\[[A-Z_/]+\]| ?[\w.]+|\s+|[^]/g],
  ["1", /[^]/g],
  ["7", /[^]{1,7}/g],
  ["whole", /[^]+/g],
];

async function runOriginals(requests) {
  const child = spawn(given.python, [path.join(here, "originals.py"), "sglang", given.folder], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  child.stdin.end(requests.map((request) => `${JSON.stringify(request)}\n`).join(""));
  let output = "";
  for await (const chunk of child.stdout.setEncoding("utf8")) output += chunk;
  return output
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** The compared part of a result: indices differ between the two by design. */
function comparable({ raises, reasoning, normal, calls = [] }) {
  const named = calls.map(([name, argumentsText]) => [name, argumentsText]);
  return JSON.stringify([raises, reasoning, normal?.replaceAll(/\s+/g, " ").trim(), named]);
}

const isWanted = ({ name, dialects }) =>
  dialects.includes("sglang") && (given.parser === undefined || given.parser === name);
const requests = [
  ...listToolCallParsers()
    .filter(isWanted)
    .flatMap((parser) => [...requestsFor("tools", parser)]),
  ...listReasoningParsers()
    .filter(isWanted)
    .flatMap((parser) => [...requestsFor("reasoning", parser)]),
];
const results = await runOriginals(requests);
const found = new Map();
let oneShot;
for (const [index, { kind, parser, what, size }] of requests.entries()) {
  if (size === undefined) oneShot = results[index];
  const key = `${kind} ${parser}`;
  const differences = found.get(key) ?? new Map();
  found.set(key, differences);
  if (comparable(results[index]) === comparable(oneShot)) continue;
  differences.set(what, [...(differences.get(what) ?? []), size]);
  if (given.parser !== undefined) {
    console.log(`${what}, ${size}\n  one-shot ${JSON.stringify(oneShot)}`);
    console.log(`  stream   ${JSON.stringify(results[index])}`);
  }
}
for (const [key, differences] of found) {
  const listed = [...differences]
    .map(([what, sizes]) => `${what} (${sizes.join(", ")})`)
    .join("; ");
  console.log(`${key}: ${listed || "agrees"}`);
}

import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { expect, test } from "vitest";
import { toolsFromOpenAi } from "../../src/message.ts";
import { toPyValue } from "../../packages/python-values/src/value.ts";
import type { FuzzSeed } from "./fuzz.ts";
import { fuzzParsers } from "./fuzz.ts";
import { callSamples } from "./samples.ts";

/** The duration in seconds. 0: a fixed number of texts. */
const seconds = Number(process.env["TURNWRIGHT_FUZZ_SECONDS"] ?? 0);
const seed = Number(process.env["TURNWRIGHT_FUZZ_SEED"] ?? 20261121);

/** The count of texts in an ordinary test run. */
const textCount = 4000;

const parameters = { type: "object", properties: { query: { type: "string" } } };
const sampleTools = toolsFromOpenAi(
  toPyValue([{ type: "function", function: { name: "search", parameters } }]),
  "tools",
);

const samples: FuzzSeed[] = Object.entries(callSamples).map(([parser, sampleOf]) => ({
  parser,
  text: sampleOf("tea"),
  tools: sampleTools,
}));

interface Vector {
  readonly parser: string;
  readonly input?: string;
  readonly chunks?: readonly string[];
  readonly tools?: readonly { readonly function?: { readonly name?: string } }[] | null;
}

function readSeeds(name: string, prefix: string): FuzzSeed[] {
  const file = new URL(`recorded/${name}.jsonl.gz`, import.meta.url);
  const lines = gunzipSync(readFileSync(file)).toString("utf8").trim().split("\n");
  return lines.flatMap((line) => {
    const { parser, input, chunks = [], tools } = JSON.parse(line) as Vector;
    const named = (tools ?? []).filter((tool) => typeof tool.function?.name === "string");
    const text = input ?? chunks.join("");
    const definitions = toolsFromOpenAi(toPyValue(named), "tools");
    return parser.split("|").map((one) => ({ parser: prefix + one, text, tools: definitions }));
  });
}

test(
  "no text throws, and streams agree with one-shot parsing",
  { timeout: (seconds + 60) * 1000 },
  () => {
    const recorded = [
      ...readSeeds("tool-vectors-sglang", ""),
      ...readSeeds("tool-vectors-vllm", ""),
      ...readSeeds("reasoning-vectors-sglang", "reasoning "),
    ];
    const deadline = performance.now() + seconds * 1000;
    const counts = fuzzParsers({
      seed,
      seeds: [...samples, ...recorded],
      isOver: (caseCount) => (seconds > 0 ? performance.now() > deadline : caseCount >= textCount),
    });
    if (seconds > 0) console.info(`seed ${seed}: ${JSON.stringify(counts)}`);
    expect(counts.withCalls).toBeGreaterThan(counts.toolCallTexts / 10);
  },
);

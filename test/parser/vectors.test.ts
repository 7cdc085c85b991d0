import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { toolsFromOpenAi } from "../../src/message.ts";
import { listToolCallParsers } from "../../packages/tool-parsers/src/registry.ts";
import type { CompatResult, Dialect } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict, isPyList } from "../../packages/python-values/src/value.ts";
import { absentFromVllm, knownDifferences } from "./known-differences.ts";
import { sharedData } from "../../src/testing/shared-data.fixture.ts";

/** A folder of vectors from the tests of SGLang and vLLM, which this repository does not contain. */
const shared = sharedData();

/** The engine versions of the recorded revisions. */
const versions: Readonly<Record<string, string>> = {
  "v0.4.5": "0.4.5",
  "v0.4.6.post5": "0.4.6",
  "v0.4.9.post6": "0.4.9",
  "v0.5.2": "0.5.2",
  "v0.5.6.post2": "0.5.6",
  "main-2026-05-20": "2026-05",
  "v0.5.15.post1": "0.5.15",
};

interface Recorded {
  readonly raises?: string;
  readonly normal_text?: string | null;
  /** vLLM's name for the normal text. */
  readonly content?: string | null;
  readonly calls?: readonly { name: string; arguments_raw: string; tool_index?: number }[];
}

interface Vector {
  readonly id: string;
  readonly parser: string;
  readonly mode: string;
  /** Absent from vectors of this repository. */
  readonly origin?: string;
  readonly input: string;
  readonly expected: Recorded;
  readonly by_rev?: Readonly<Record<string, Recorded>>;
  readonly expected_after_11d40db7?: Recorded;
  readonly init?: { readonly tokenizer_vocab?: readonly string[] };
  readonly env?: { readonly SGLANG_FORWARD_UNKNOWN_TOOLS?: boolean };
}

interface Case {
  readonly key: string;
  readonly got: CompatResult;
  readonly want: CompatResult;
}

/** Returns the lines of the vectors on texts that we wrote, as scripts/compare-parsers/check-vectors.mjs runs them. */
function ownLines(dialect: Dialect): string[] {
  return unzipLines(
    fileURLToPath(new URL(`recorded/tool-vectors-${dialect}.jsonl.gz`, import.meta.url)),
  );
}

/** Returns the lines of the vectors that come from the tests of SGLang and vLLM. */
function upstreamLines(dialect: Dialect): string[] {
  if (shared === null) return [];
  const file = path.join(shared, "data/vectors", `tool-parsers-${dialect}.jsonl.gz`);
  return unzipLines(file).filter((line) => (JSON.parse(line) as Vector).origin !== "probe");
}

function unzipLines(file: string): string[] {
  return gunzipSync(readFileSync(file)).toString("utf8").trim().split("\n");
}

function toCompat(recorded: Recorded): CompatResult {
  return {
    normalText: recorded.normal_text ?? recorded.content ?? "",
    calls: (recorded.calls ?? []).map((call, ordinal) => ({
      name: call.name,
      argumentsText: call.arguments_raw,
      toolIndex: call.tool_index ?? ordinal,
    })),
    raises: recorded.raises !== undefined,
  };
}

function expectations(vector: Vector, dialect: Dialect): [version: string, want: Recorded][] {
  if (dialect === "vllm") return [["0.24", vector.expected]];
  const wanted: [string, Recorded][] = [["2026-08", vector.expected]];
  for (const [revision, version] of Object.entries(versions)) {
    const recorded = vector.by_rev?.[revision];
    // An absent field means the value of `expected`. Only qwen25 was recorded at every revision,
    // and the transcribed later tests were not run on the old ones.
    const everywhere = vector.parser === "qwen25" && vector.origin !== "sglang-test-later";
    if (recorded !== undefined) wanted.push([version, recorded]);
    else if (everywhere) wanted.push([version, vector.expected]);
  }
  const later = vector.expected_after_11d40db7;
  if (later !== undefined) wanted.push(["next", later]);
  return wanted;
}

/** The vector's tools, which the Responses API does not wrap. */
function readTools(line: string): PyValue {
  const tools = (parsePythonJson(line) as PyDict).get("tools") ?? [];
  if (!isPyList(tools)) return [];
  return tools.map((tool) =>
    isPyDict(tool) && !tool.has("function") ? new Map([["function", tool]]) : tool,
  );
}

const parsers = new Map(
  listToolCallParsers().flatMap((parser) =>
    [parser.name, ...parser.aliases].map((name) => [name, parser] as const),
  ),
);

function runVectors(lines: readonly string[], dialect: Dialect): Case[] {
  return lines.flatMap((line) => {
    const vector = JSON.parse(line) as Vector;
    // Several names of one parser are recorded together.
    const parser = parsers.get(vector.parser.split("|")[0] ?? "");
    if (vector.mode !== "non_stream" || parser?.dialects.includes(dialect) !== true) return [];
    const tools = toolsFromOpenAi(readTools(line), vector.id);
    return expectations(vector, dialect).map(([engineVersion, recorded]) => ({
      key: `${vector.id}@${engineVersion}`,
      got: parser.parse(vector.input, {
        tools,
        dialect,
        engineVersion,
        vocabulary: vector.init?.tokenizer_vocab ?? [],
        forwardUnknownTools: vector.env?.SGLANG_FORWARD_UNKNOWN_TOOLS ?? false,
      }).compat,
      want: toCompat(recorded),
    }));
  });
}

/** Expects every vector to be met except the known differences. */
function expectMet(cases: readonly Case[]): void {
  const missed = cases.filter(({ got, want }) => JSON.stringify(got) !== JSON.stringify(want));
  expect(missed.filter(({ key }) => !(key in knownDifferences))).toEqual([]);
}

/** Returns the names of recorded parsers that we neither have nor list as absent. */
function unlistedParsers(lines: readonly string[]): string[] {
  const names = lines.flatMap((line) => (JSON.parse(line) as Vector).parser.split("|")[0] ?? []);
  const absent = names.filter((name) => parsers.get(name)?.dialects.includes("vllm") !== true);
  return absent.filter((name) => !(name in absentFromVllm));
}

describe("recorded one-shot vectors", () => {
  test.each([
    ["sglang", 1959],
    ["vllm", 1031],
  ] as const)("%s: our parsers return what the engine's own parsers return", (dialect, count) => {
    const cases = runVectors(ownLines(dialect), dialect);
    expectMet(cases);
    expect(cases).toHaveLength(count);
  });

  test("every parser that vLLM has is here or listed as absent", () => {
    expect(unlistedParsers(ownLines("vllm"))).toEqual([]);
  });
});

describe.skipIf(shared === null)("vectors from the engines' own tests", () => {
  test.each([
    ["sglang", 221],
    ["vllm", 196],
  ] as const)("%s: our parsers return what the engine's own parsers return", (dialect, count) => {
    const cases = runVectors(upstreamLines(dialect), dialect);
    expectMet(cases);
    expect(cases).toHaveLength(count);
    if (dialect === "vllm") expect(unlistedParsers(upstreamLines(dialect))).toEqual([]);
  });
});

test("the registry's names and aliases are all different", () => {
  const names = listToolCallParsers().flatMap((parser) => [parser.name, ...parser.aliases]);
  expect(new Set(names).size).toBe(names.length);
});

import { readFileSync } from "node:fs";
import path from "node:path";
import { gunzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import type {
  ReasoningOptions,
  ReasoningResult,
} from "../../packages/tool-parsers/src/reasoning/reasoning-parser.ts";
import { findReasoningParser } from "../../packages/tool-parsers/src/reasoning/registry.ts";
import { sharedData } from "../../src/testing/shared-data.fixture.ts";

/** A folder of vectors from SGLang's tests, which this repository does not contain. */
const shared = sharedData();

interface Recorded {
  readonly reasoning_text: string;
  readonly normal_text: string;
}

interface Vector {
  readonly id: string;
  readonly parser: string;
  readonly mode: "non_stream" | "stream";
  /** Absent from vectors of this repository. */
  readonly origin?: string;
  readonly init?: {
    readonly force_reasoning?: boolean;
    readonly tool_call_parser_active?: boolean;
    readonly force_nonempty_content?: boolean;
  } | null;
  readonly input?: string;
  readonly chunks?: readonly string[];
  readonly expected: Recorded;
  readonly "expected_v0.5.15.post1"?: Recorded;
  readonly "expected_v0.5.6.post2"?: Recorded;
}

/** Returns the vectors on texts that we wrote. */
function ownVectors(): Vector[] {
  return readVectors(new URL("recorded/reasoning-vectors-sglang.jsonl.gz", import.meta.url));
}

/** Returns the vectors that come from SGLang's tests. */
function upstreamVectors(): Vector[] {
  if (shared === null) return [];
  const file = path.join(shared, "data/vectors/reasoning-parsers-sglang.jsonl.gz");
  return readVectors(file).filter(({ origin }) => origin !== "probe");
}

function readVectors(file: string | URL): Vector[] {
  const lines = gunzipSync(readFileSync(file)).toString("utf8").trim().split("\n");
  const vectors = lines.map((line) => JSON.parse(line) as Vector);
  // The base class is not a parser that a user can choose.
  return vectors.filter(({ parser }) => parser !== "(base)");
}

function optionsOf({ init }: Vector, engineVersion: string): ReasoningOptions {
  return {
    engineVersion,
    ...(init?.force_reasoning !== undefined && { forceReasoning: init.force_reasoning }),
    toolCallParserActive: init?.tool_call_parser_active ?? false,
    forceNonemptyContent: init?.force_nonempty_content ?? false,
  };
}

function toResult(recorded: Recorded): ReasoningResult {
  return { reasoning: recorded.reasoning_text, normalText: recorded.normal_text };
}

describe.each([
  ["on texts that we wrote", ownVectors()],
  ["from SGLang's tests", upstreamVectors()],
])("recorded reasoning vectors %s", (_, vectors) => {
  test.skipIf(vectors.length === 0)(
    "our parsers return what SGLang's return, at each recorded release",
    () => {
      const missed = vectors.flatMap((vector) => {
        if (vector.mode !== "non_stream") return [];
        const wanted = [
          ["2026-08", vector.expected],
          ["0.5.15", vector["expected_v0.5.15.post1"]],
          ["0.5.6", vector["expected_v0.5.6.post2"]],
        ] as const;
        return wanted.flatMap(([version, recorded]) => {
          if (recorded === undefined) return [];
          const parser = findReasoningParser(vector.parser);
          const got = parser.parse(vector.input ?? "", optionsOf(vector, version));
          const want = toResult(recorded);
          return JSON.stringify(got) === JSON.stringify(want) ? [] : [{ id: vector.id, got, want }];
        });
      });
      expect(missed).toEqual([]);
    },
  );

  test.skipIf(vectors.length === 0)("a stream is split as its complete text is", () => {
    for (const vector of vectors) {
      if (vector.chunks === undefined) continue;
      const parser = findReasoningParser(vector.parser);
      const options = optionsOf(vector, "2026-08");
      const stream = parser.createStream(options);
      const parts = [...vector.chunks.map((chunk) => stream.push(chunk)), stream.end()];
      const joined = {
        reasoning: parts.map(({ reasoning }) => reasoning).join(""),
        normalText: parts.map(({ normalText }) => normalText).join(""),
      };
      expect(joined).toEqual(parser.parse(vector.chunks.join(""), options));
    }
  });
});

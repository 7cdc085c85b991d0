import fc from "fast-check";
import { expect, test } from "vitest";
import { toolsFromOpenAi } from "./tool-definition.ts";
import { toPyValue } from "../../python-values/src/index.ts";
import { toAttempts, type Block } from "./attempt.ts";
import { createParseContext } from "./parse-context.ts";
import type { CompatCall, Dialect } from "./tool-call-parser.ts";

const names = ["f", "g"];
const tools = toolsFromOpenAi(
  toPyValue(names.map((name) => ({ type: "function", function: { name } }))),
  "tools",
);

/** Names and arguments, few enough that the same pairs occur repeatedly. */
const pairs = fc.array(fc.tuple(fc.constantFrom(...names), fc.integer({ min: 0, max: 2 })), {
  maxLength: 6,
});

/** The arguments that each block gets: those of the first remaining call that fits. */
function argumentsOf(
  blocks: readonly Block[],
  calls: readonly CompatCall[],
  dialect: Dialect,
): (string | undefined)[] {
  const left = [...calls];
  /** Calls to a tool that were skipped are used later only for exactly equal arguments. */
  const passed = new Map<string, number>();
  return blocks.map(({ name = "", argumentsText = "" }) => {
    const takes = (text: string): boolean => {
      const index = left.findIndex((call) => call.name === name && call.argumentsText === text);
      if (index !== -1) left.splice(index, 1);
      return index !== -1;
    };
    if (takes(argumentsText)) return argumentsText;
    const own = dialect === "sglang" ? [] : calls.filter((call) => call.name === name);
    for (let place = passed.get(name) ?? 0; place < own.length; place++) {
      passed.set(name, place + 1);
      const text = own[place]?.argumentsText ?? "";
      if (takes(text)) return text;
    }
    return undefined;
  });
}

test("each reported call belongs to one block, in any order of the calls", () => {
  fc.assert(
    fc.property(pairs, pairs, fc.constantFrom("sglang", "vllm"), (written, reported, dialect) => {
      const blocks = written.map(([name, value], index): Block => ({
        span: [index, index + 1],
        name,
        argumentValue: new Map([["a", BigInt(value)]]),
        argumentsText: `{"a": ${value}}`,
      }));
      const calls = reported.map(([name, value]) => ({
        name,
        argumentsText: `{"a": ${value}}`,
        toolIndex: 0,
      }));
      const attempts = toAttempts(blocks, {
        text: "x".repeat(blocks.length),
        context: createParseContext({ tools, dialect }),
        compat: { normalText: "", calls, raises: false },
        readsReasoning: false,
        closers: undefined,
        finishReason: "stop",
      });
      const expected = argumentsOf(blocks, calls, dialect);
      const isUnreported = (index: number): boolean =>
        attempts[index]?.diagnostics.some(({ status }) => status === "malformed-structure") ===
        true;
      for (const [index, text] of expected.entries()) {
        expect(attempts[index]?.argumentsText).toBe(text ?? blocks[index]?.argumentsText);
        expect(isUnreported(index)).toBe(text === undefined);
      }
    }),
    { numRuns: 1000 },
  );
});

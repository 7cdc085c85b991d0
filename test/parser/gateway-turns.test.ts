import { describe, expect, test } from "vitest";
import { families } from "../../packages/tool-parsers/src/families.ts";
import type { Dialect } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { toPyValue, type PyDict } from "../../packages/python-values/src/value.ts";
import { splitTurn } from "../../src/agent/turn-parts.ts";
import { replyFormats } from "../../src/gateway/turn/reply-formats.ts";
import { TurnReader } from "../../src/gateway/turn/turn-reader.ts";
import { toolsFromOpenAi } from "../../src/message.ts";
import type { Renderer } from "../../src/renderer/renderer.ts";
import { templateSamples } from "./response-templates.ts";
import { callSamples } from "./samples.ts";

const parameters = { type: "object", properties: { query: { type: "string" } } };
const tools = toolsFromOpenAi(
  toPyValue([{ type: "function", function: { name: "search", parameters } }]),
  "tools",
);

/** For the parsers that read by a template. */
const responseTemplate = toPyValue(templateSamples["beam"]!.template) as PyDict;

/** The pairs of parsers with which one family's models are read, for each engine. */
const rows = families.flatMap(({ toolCallParsers = [], reasoningParsers = [] }) =>
  toolCallParsers.flatMap((parser) =>
    parser.dialects.flatMap((dialect) =>
      [undefined, ...reasoningParsers].map(
        (reasoning) =>
          [parser.name, reasoning?.name ?? "none", dialect, { parser, reasoning }] as const,
      ),
    ),
  ),
);

/** Returns a renderer of which only the formats of turns are used. */
function rendererOf(parser: string, reasoningParser: string, dialect: Dialect): Renderer {
  return {
    card: { parser, reasoningParser, dialect, stopLiterals: ["<end>"], source: "the test" },
    codec: { addedTokens: [] },
    responseTemplate,
  } as unknown as Renderer;
}

describe("the gateway reads the calls that a rollout reads", () => {
  test.each(rows)("%s after %s, %s", (name, reasoningName, dialect, { parser, reasoning }) => {
    const sample = callSamples[name]!("the moon");
    const stopText = parser.closingStops?.find((stop) => sample.endsWith(stop)) ?? "";
    const text = sample.slice(0, sample.length - stopText.length);
    const formats = replyFormats(rendererOf(name, reasoningName, dialect));
    const splitReasoning = (turn: string, { opened }: { opened: boolean }) => {
      const options = { toolCallParserActive: true, forceReasoning: opened, dialect };
      const split = reasoning?.parse(turn, { ...options, responseTemplate });
      return { reasoning: split?.reasoning ?? "", rest: split?.normalText ?? turn };
    };
    if (reasoning === undefined)
      expect(parser.parse(sample, { tools, dialect, responseTemplate }).compat.calls.length).toBe(
        1,
      );
    for (const reasoningOpened of [false, true]) {
      const { compat } = splitTurn(
        { text, stopText, tools, reasoningOpened, finish: "stop", turnIndex: 0 },
        { parser, dialect, vocabulary: [], responseTemplate, splitReasoning },
      );
      for (const size of [1, sample.length]) {
        const reader = new TurnReader({
          formats,
          tools,
          stops: [],
          reasoningOpened,
          ids: { mint: (prefix) => prefix, callPrefix: "call_" },
        });
        for (let at = 0; at < text.length; at += size) reader.push(text.slice(at, at + size));
        reader.end({ finish: "stop", closedBy: stopText });
        const calls = reader.parts.flatMap((part) => (part.type === "call" ? [part.text] : []));
        expect(calls).toEqual(compat.calls.map(({ argumentsText }) => argumentsText));
      }
    }
  });
});

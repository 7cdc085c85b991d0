import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type PyDict, toPyValue } from "../../../python-values/src/index.ts";
import { beamTemplate } from "../formats/response-template/beam-template.ts";
import type { ReasoningOptions, ReasoningParser, ReasoningResult } from "./reasoning-parser.ts";
import { findReasoningParser, listReasoningParsers } from "./registry.ts";

/** The result of a stream whose text is cut at these positions. */
function stream(
  parser: ReasoningParser,
  chunks: readonly string[],
  options: ReasoningOptions,
): ReasoningResult {
  const open = parser.createStream(options);
  const parts = [...chunks.map((chunk) => open.push(chunk)), open.end()];
  return {
    reasoning: parts.map(({ reasoning }) => reasoning).join(""),
    normalText: parts.map(({ normalText }) => normalText).join(""),
  };
}

describe("the reasoning parsers", () => {
  test("include the 32 of SGLang, and one that only vLLM has", () => {
    const has = (dialect: "sglang" | "vllm") =>
      listReasoningParsers().filter(({ dialects }) => dialects.includes(dialect));
    expect(has("sglang")).toHaveLength(32);
    const ofVllm = ["cohere_command3", "cohere_command4", "gpt-oss"];
    expect(has("vllm").map(({ name }) => name)).toEqual(ofVllm);
    expect(listReasoningParsers()).toHaveLength(33);
  });

  test("are found by names in any case", () => {
    expect(findReasoningParser("Qwen3").name).toBe("qwen3");
  });

  test("an unknown name is refused with the known ones", () => {
    expect(() => findReasoningParser("qwen4")).toThrow(/expected one of apertus2509, beam, cohere/);
  });
});

describe("qwen3", () => {
  const qwen3 = findReasoningParser("qwen3");

  test.each<[string, ReasoningOptions, ReasoningResult]>([
    ["<think>a\n</think>\n\nb", {}, { reasoning: "a\n", normalText: "\n\nb" }],
    ["plain", {}, { reasoning: "", normalText: "plain" }],
    ["plain", { forceReasoning: true }, { reasoning: "plain", normalText: "" }],
    ["a</think>b", { forceReasoning: true }, { reasoning: "a", normalText: "b" }],
    ["\n<think>a</think>b", {}, { reasoning: "\n<think>a", normalText: "b" }],
    ["<think>a<tool_call>b", {}, { reasoning: "a", normalText: "<tool_call>b" }],
    ["<think> a </think> b ", { engineVersion: "0.5.6" }, { reasoning: "a ", normalText: "b" }],
  ])("%j with %j", (text, options, expected) => {
    expect(qwen3.parse(text, options)).toEqual(expected);
  });

  test("a stream releases reasoning as soon as it cannot be part of a tag", () => {
    const open = qwen3.createStream();
    const released = ["<think>pl", "an</th", "ough", "t</think>", "42"].map((chunk) =>
      open.push(chunk),
    );
    expect(released).toEqual([
      { reasoning: "pl", normalText: "" },
      { reasoning: "an", normalText: "" },
      { reasoning: "</though", normalText: "" },
      { reasoning: "t", normalText: "" },
      { reasoning: "", normalText: "42" },
    ]);
  });
});

/** For the parser that reads by a template. */
const responseTemplate = toPyValue(beamTemplate) as PyDict;

describe("streams", () => {
  test("of an old release strip white space as that release does", () => {
    const minimax = findReasoningParser("minimax-m3");
    const options = { engineVersion: "0.5.6", forceReasoning: false };
    const text = "plan it<mm:think></mm:think># Answer";
    expect(stream(minimax, [...text], options)).toEqual({
      reasoning: "plan it",
      normalText: "# Answer",
    });
  });

  const closers =
    "</think> <tool_call> </mm:think> [/THINK] <channel|> ◁/think▷ <|tool_calls_section_begin|> " +
    "<tool_calls> <｜DSML｜ <|channel> <|end|> <|message|> <|eom|> <|inner_suffix|> " +
    "<|END_THINKING|> <|START_TEXT|>";
  const words = ["a", " ", "\n", "<", ">", "|", "think", "/", "to=self", "commentary", "[", "x y"];
  const openers = listReasoningParsers().flatMap(({ markers }) => markers);
  const pieces = fc.constantFrom(...words, ...openers, ...closers.split(" "));

  test.each(listReasoningParsers().map((parser) => [parser.name, parser] as const))(
    "%s: the result is that of the complete text, for any division into pieces",
    (_, parser) => {
      fc.assert(
        fc.property(
          fc.array(pieces, { maxLength: 8 }),
          fc.constantFrom(undefined, true, false),
          fc.constantFrom("0.5.6", "2026-08"),
          fc.integer({ min: 1, max: 5 }),
          (parts, forceReasoning, engineVersion, size) => {
            const text = parts.join("");
            const options = {
              engineVersion,
              responseTemplate,
              ...(forceReasoning !== undefined && { forceReasoning }),
            };
            const whole = parser.parse(text, options);
            const chunks = text.match(new RegExp(`[^]{1,${size}}`, "g")) ?? [];
            expect(stream(parser, chunks, options)).toEqual(whole);
          },
        ),
        { numRuns: 150 },
      );
    },
  );
});

describe("muse", () => {
  const turn = " to=commentary<|message|>Hm.<|eom|><|start|>assistant to=user<|message|>Hi.<|eot|>";

  test.each([
    ["0.5.23", "Hm.Hi."],
    ["2026-08", " to=commentary<|message|>Hm.<|eom|>Hi."],
  ])("since 0.5.23 comments are answers: %s", (engineVersion, normalText) => {
    const parser = findReasoningParser("muse");
    expect(parser.parse(turn, { engineVersion })).toEqual({ reasoning: "", normalText });
  });
});

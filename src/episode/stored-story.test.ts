import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Message } from "../message.ts";
import type { TurnRecord } from "./episode.ts";
import { restoreStory, storeStory } from "./stored-story.ts";

const long = (letter: string): string => letter.repeat(64);

function turn(text: string, facts: Partial<TurnRecord> = {}): TurnRecord {
  return {
    turnIndex: 0,
    text,
    finish: "stop",
    sampledTokenCount: 1,
    promptTokenCount: 1,
    attemptCounts: {},
    steps: [],
    engineMs: 1,
    environmentMs: 1,
    ...facts,
  };
}

function step(observation: string) {
  return { source: "read", callId: "c", observation, result: "acted" as const };
}

describe("storeStory()", () => {
  test("has texts once that a message has too", () => {
    const messages: readonly Message[] = [
      { role: "user", content: "Hi" },
      { role: "assistant", content: long("a"), reasoning: long("r"), toolCalls: [] },
      { role: "tool", content: long("o"), toolCallId: "c", name: "read" },
      { role: "assistant", content: long("b") },
    ];
    const story = {
      messages,
      turns: [
        turn(`<think>${long("r")}</think>${long("a")}<call>`, {
          reasoning: long("r"),
          steps: [step(long("o")), step("short")],
        }),
        turn(long("b")),
      ],
    };
    const stored = storeStory(story);
    expect(stored.messages).toBe(messages);
    expect(stored.turns).toEqual([
      {
        ...story.turns[0],
        text: ["<think>", { reasoningOf: 1 }, "</think>", { contentOf: 1 }, "<call>"],
        reasoning: [{ reasoningOf: 1 }],
        steps: [{ ...step(""), observation: [{ contentOf: 2 }] }, step("short")],
      },
      { ...story.turns[1], text: [{ contentOf: 3 }] },
    ]);
    expect(JSON.stringify(restoreStory(JSON.parse(JSON.stringify(stored))))).toBe(
      JSON.stringify(story),
    );
  });

  test("leaves a story with short texts as it is", () => {
    const story = {
      messages: [{ role: "assistant" as const, content: "a".repeat(63) }],
      turns: [turn("a".repeat(63), { steps: [step("a".repeat(63))] })],
    };
    expect(storeStory(story)).toEqual(story);
  });

  test("is undone by restoreStory(), to the byte, for any texts in common", () => {
    const texts = fc
      .array(fc.constantFrom(long("x"), long("y"), long("z"), "s", ""), { maxLength: 4 })
      .map((parts) => parts.join("|"));
    const message = fc.oneof(
      fc.record({ role: fc.constant("user" as const), content: texts }),
      fc.record({ role: fc.constant("assistant" as const), content: texts, reasoning: texts }),
      fc.record({
        role: fc.constant("tool" as const),
        content: texts,
        toolCallId: fc.constant("c"),
        name: fc.constant("read"),
      }),
    );
    const turns = fc.record({
      text: texts,
      reasoning: fc.option(texts, { nil: undefined }),
      steps: fc.array(texts.map(step), { maxLength: 3 }),
    });
    fc.assert(
      fc.property(
        fc.array(message, { maxLength: 8 }),
        fc.array(turns, { maxLength: 8 }),
        (messages, drawn) => {
          const story = {
            messages,
            turns: drawn.map(({ text, reasoning, steps }) =>
              turn(text, { steps, ...(reasoning !== undefined && { reasoning }) }),
            ),
          };
          const line = JSON.stringify(storeStory(story));
          expect(JSON.stringify(restoreStory(JSON.parse(line)))).toBe(JSON.stringify(story));
        },
      ),
    );
  });
});

describe("restoreStory()", () => {
  test.each([
    [[{ contentOf: 7 }]],
    [[{ contentOf: "length" }]],
    [[{ reasoningOf: 0 }]],
    [[{}]],
    [[null]],
    [[7]],
    [[]],
    [{ contentOf: 0 }],
  ])("leaves wrong parts as they are: %j", (text) => {
    const row = { messages: [{ role: "user", content: "Hi" }], turns: [{ text, steps: [7] }] };
    expect(restoreStory(row)).toEqual(row);
  });

  test("changes nothing in a line that is no episode", () => {
    const any = fc.oneof(
      fc.jsonValue(),
      fc.record({ messages: fc.jsonValue(), turns: fc.jsonValue() }),
    );
    fc.assert(
      fc.property(any, (value) => {
        expect(restoreStory(value)).toEqual(value);
      }),
    );
  });
});

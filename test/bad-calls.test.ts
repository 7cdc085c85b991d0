import { describe, expect, test } from "vitest";
import type { CallPolicy } from "../src/agent/call-policy.ts";
import { createToolCallingAgent } from "../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../src/agent/tool-use-policy.ts";
import type { Environment } from "../src/environment/environment.ts";
import { findReasoningParser } from "../packages/tool-parsers/src/reasoning/registry.ts";
import { findToolCallParser } from "../packages/tool-parsers/src/registry.ts";
import type { Renderer } from "../src/renderer/renderer.ts";
import { episodeSamples } from "../src/run/folder/episode-samples.ts";
import { characterIds, createCharacterRenderer } from "../src/testing/character-renderer.ts";
import { createScriptedEngine } from "../src/testing/scripted-engine.ts";
import { verifySample } from "../src/trajectory/verify-sample.ts";
import { createScriptedUser } from "../src/user/scripted-user.ts";
import type { Episode } from "../src/episode/episode.ts";
import { defaultLimits, type EpisodeLimits } from "../src/episode/limits.ts";
import { playEpisode } from "../src/episode/play-episode.ts";
import { oneToolEnvironment } from "../src/environment/one-tool-environment.fixture.ts";

/** A lamp that counts its switches, and a user who leaves at the end of the script. */
function lamp(switched: string[]): Environment {
  return oneToolEnvironment({
    name: "lamp",
    tool: {
      name: "switch",
      parameters: { type: "object", properties: { to: { type: "string" } } },
    },
    policyText: "You switch the lamp.",
    open: () => ({
      call(action) {
        const to = action.arguments.get("to");
        switched.push(typeof to === "string" ? to : "undefined");
        return "done";
      },
      score: () => ({ reward: 0, details: {} }),
    }),
  });
}

interface Played {
  readonly episode: Episode;
  /** The states that the lamp was switched to, in order. */
  readonly switched: readonly string[];
}

async function play(
  texts: readonly (string | { readonly cut: string })[],
  {
    policy = {},
    limits = {},
    renderer = createCharacterRenderer(),
  }: {
    readonly policy?: CallPolicy;
    readonly limits?: Partial<EpisodeLimits>;
    readonly renderer?: Renderer;
  } = {},
): Promise<Played> {
  const switched: string[] = [];
  const reasoning = findReasoningParser("qwen3");
  const generations = texts.map((text) =>
    typeof text === "string"
      ? { outputIds: characterIds(text) }
      : { outputIds: characterIds(text.cut).slice(0, -1), finish: { type: "length" } as const },
  );
  const environment = lamp(switched);
  const task = environment.task("test", 0);
  const episode = await playEpisode(
    { task, rolloutId: "lamp/test/0#0", groupId: "g", sampleIndex: 0, seed: 0 },
    {
      environment,
      user: createScriptedUser({
        lines: ["Lamp on, please.", "Well?", "Well?", { text: "Bye.", leaves: true }],
      }),
      engine: createScriptedEngine(generations),
      renderer,
      agent: createToolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: toolUsePolicies.many,
        splitReasoning: (text, { opened }) => {
          const parts = reasoning.parse(text, { forceReasoning: opened });
          return { reasoning: parts.reasoning, rest: parts.normalText };
        },
        reasoningMarkup: { opener: "<think>", closer: "</think>" },
        ...policy,
      }),
      sampling: {},
      limits: { ...defaultLimits, ...limits },
      now: () => 0,
    },
    { signal: new AbortController().signal },
  );
  for (const sample of episodeSamples(episode)) expect(verifySample(sample)).toEqual([]);
  return { episode, switched };
}

const good = '<tool_call>\n{"name": "switch", "arguments": {"to": "on"}}\n</tool_call>';
const trailing = '<tool_call>\n{"name": "switch", "arguments": {"to": "on",}}\n</tool_call>';
const end = ["a", "b", "c"];

describe("bad calls", () => {
  test("are reported to the policy, found again in text and ids, and counted in the sample", async () => {
    const { episode, switched } = await play([`Wait. ${trailing}`, ...end]);
    expect(switched).toEqual([]);
    const span = [6, 6 + trailing.length];
    expect(episode.turns[0]).toMatchObject({
      attemptCounts: { "invalid-json": 1 },
      attempts: [{ status: "invalid-json", span, tokenSpan: span }],
      format: {
        formatOk: false,
        firstError: { status: "invalid-json", span, tokenSpan: span },
        leakedMarkup: false,
        thinkingMalformed: false,
      },
      steps: [
        {
          source: "unreadable_call",
          observation: "Error: the tool call is not valid JSON",
          result: "refused",
          isError: true,
        },
      ],
    });
    expect(episode.turns[1]).not.toHaveProperty("attempts");
    expect(episode.turns[1]?.format?.formatOk).toBe(true);
    expect(episode.counts).toMatchObject({ formatErrorCount: 1, toolCallCount: 0 });
    const [sample] = episodeSamples(episode);
    const start = sample!.turns[0]!.start;
    expect(sample!.metadata).toEqual({
      environment: "lamp",
      split: "test",
      taskIndex: 0,
      sampleIndex: 0,
      turnCount: 4,
      formatErrorCount: 1,
      attemptCounts: { "invalid-json": 1 },
      formatOk: false,
      firstFormatError: {
        turnIndex: 0,
        status: "invalid-json",
        tokenSpan: [start + 6, start + 6 + trailing.length],
      },
    });
    const { codec } = createCharacterRenderer();
    expect(await codec.decode(sample!.tokenIds.slice(start + 6, start + 6 + trailing.length))).toBe(
      trailing,
    );
  });

  test("that are mended by option are marked in the step and in the counts", async () => {
    const { episode, switched } = await play([trailing, ...end], {
      policy: { repair: ["invalid-json"] },
    });
    expect(switched).toEqual(["on"]);
    expect(episode.turns[0]).toMatchObject({
      attempts: [{ status: "invalid-json" }],
      format: { formatOk: false, firstError: { status: "invalid-json" } },
      steps: [{ source: "switch", observation: "done", result: "acted", repaired: true }],
    });
    expect(episode.counts).toMatchObject({
      formatErrorCount: 0,
      toolCallCount: 1,
      repairedCallCount: 1,
    });
    expect(episodeSamples(episode)[0]!.metadata).toMatchObject({ repairedCallCount: 1 });
  });

  test("end the episode when there were too many turns of them", async () => {
    const { episode } = await play([trailing, `${trailing}\n${good}`, trailing, ...end], {
      limits: { maxFormatErrors: 2 },
    });
    expect(episode).toMatchObject({
      outcome: "truncated",
      stopReason: "format-errors",
      reward: 0,
      counts: { turnCount: 3, formatErrorCount: 2, toolCallCount: 1 },
    });
  });

  test("are all the calls of a turn that was cut off, even if its text was repaired", async () => {
    const policy: CallPolicy = { repair: ["unclosed-block", "invalid-json"] };
    const ended = await play([{ cut: good }], { policy });
    expect(ended.switched).toEqual([]);
    expect(ended.episode).toMatchObject({ outcome: "truncated", stopReason: "length" });
    expect(ended.episode.turns[0]).toMatchObject({
      finish: "length",
      attempts: [{ status: "truncated-by-length", span: [0, good.length] }],
      steps: [],
    });
    const continued = await play([{ cut: good }, ...end], {
      policy,
      limits: { onLength: "close-and-continue" },
    });
    expect(continued.switched).toEqual([]);
    expect(continued.episode.turns[0]?.steps).toMatchObject([
      { result: "refused", observation: "Error: the tool call was cut off" },
    ]);
  });

  test("are only the calls that the engine would not report, if the policy is measured by those", async () => {
    // SGLang wants line breaks inside the tags.
    const packed = good.replaceAll("\n", "");
    const { switched } = await play([packed, good, ...end], { policy: { execute: "reported" } });
    expect(switched).toEqual(["on"]);
  });

  test("are distinguished from leaking markup and malformed reasoning, which are counted too", async () => {
    const { episode } = await play(["Use <tool_call>.", "a</think>b", "<think>a", "c"]);
    expect(episode.turns.map(({ format }) => format)).toEqual([
      { formatOk: false, leakedMarkup: true, thinkingMalformed: false },
      { formatOk: false, leakedMarkup: true, thinkingMalformed: true },
      { formatOk: false, leakedMarkup: false, thinkingMalformed: true },
    ]);
    expect(episode.counts).toMatchObject({
      formatErrorCount: 0,
      leakedMarkupCount: 2,
      malformedThinkingCount: 2,
    });
  });
});

describe("reasoning that the prompt opens", () => {
  test("is reported for each prompt: templates open it after the user, and not after tools", async () => {
    const plain = createCharacterRenderer();
    const renderer: Renderer = {
      ...plain,
      async prompt(conversation) {
        const { ids, text } = await plain.prompt(conversation);
        return { ids: [...ids, ...(await plain.codec.encode("<think>"))], text: `${text}<think>` };
      },
    };
    const { episode, switched } = await play([`Hm.</think>${good}`, "On.", ...end], { renderer });
    expect(switched).toEqual(["on"]);
    expect(episode.turns.map(({ reasoning, text }) => reasoning ?? text)).toEqual([
      "Hm.",
      "On.",
      "a",
      "b",
    ]);
    expect(episode.turns.map(({ format }) => format?.formatOk)).toEqual([true, true, true, true]);
  });
});

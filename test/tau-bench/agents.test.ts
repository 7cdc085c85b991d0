import { createHash } from "node:crypto";
import path from "node:path";
import { describe, expect, test } from "vitest";
import { createTauRetail, loadTauBenchBundle } from "../../environments/tau-bench/index.ts";
import type { Agent } from "../../src/agent/agent.ts";
import { createFewShotAgent } from "../../src/agent/few-shot-agent.ts";
import { readTextActionPrompts } from "../../src/agent/read-text-action-prompts.ts";
import { createTextActionAgent } from "../../src/agent/text-action-agent.ts";
import {
  createToolCallingAgent,
  type ToolCallingOptions,
} from "../../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../../src/agent/tool-use-policy.ts";
import { defaultLimits } from "../../src/episode/limits.ts";
import { playEpisode } from "../../src/episode/play-episode.ts";
import { toolsFromOpenAi, type Message, type ToolDefinition } from "../../src/message.ts";
import type {
  Attempt,
  AttemptStatus,
  ToolCallParser,
} from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { isPyDict, type PyValue } from "../../packages/python-values/src/value.ts";
import { characterIds, createCharacterRenderer } from "../../src/testing/character-renderer.ts";
import { createScriptedEngine } from "../../src/testing/scripted-engine.ts";
import { toSamples } from "../../src/trajectory/sample.ts";
import { verifySample } from "../../src/trajectory/verify-sample.ts";
import { createScriptedUser } from "../../src/user/scripted-user.ts";
import { sharedData } from "../../src/testing/shared-data.fixture.ts";
import { readGolden } from "../support/tau-bench-golden.ts";

interface RecordedCall {
  readonly id: string;
  readonly function: { readonly name: string; readonly arguments: string } | null;
}

interface RecordedMessage {
  readonly role: string;
  readonly content?: string | null;
  readonly content_sha256?: string;
  readonly tool_calls?: readonly RecordedCall[] | null;
  readonly tool_call_id?: string;
  readonly name?: string;
}

type RecordedCompletion = string | RecordedMessage;

interface RecordedSolve {
  readonly id: number;
  readonly strategy: "tool-calling" | "few-shot" | "act" | "react";
  readonly kind: string;
  readonly task_index: number;
  readonly max_num_steps: number;
  /** A pair carries the price of the call. */
  readonly completions: readonly (
    | RecordedCompletion
    | readonly [RecordedCompletion, number | null]
  )[];
  readonly users: readonly string[];
  readonly result?: {
    readonly reward: number;
    readonly messages: readonly RecordedMessage[];
    readonly reward_info: Readonly<Record<string, unknown>> | null;
  };
  readonly raises?: { readonly type: string; readonly message: string };
  /** Model calls. */
  readonly calls: number;
  readonly call_has_tools: readonly boolean[];
}

/** The recording's replacements for the domain's policy and tools. */
const recordedPolicy = "WIKI \u00e9";
const recordedTools = toolsFromOpenAi(
  parsePythonJson(
    '[{"type": "function", "function": {"name": "t", "description": "d", "parameters": {}}}]',
  ),
  "the recording's tools",
);
const recordedExamples = ["d0", "d1", "d2", "d3", "d4"];
/** With this seed CPython draws the recorded order. */
const recordedSeed = 3;

/**
 * The original sums up prices that it does not know, and raises; an engine of ours has no price.
 */
const withoutPrice = "cost None";

const shared = sharedData();

describe.skipIf(shared === null)("τ-bench's recorded agents", async () => {
  const folder = path.join(shared ?? "", "data/tau-bench");
  const records = shared === null ? [] : readGolden<RecordedSolve>(shared, "agents");
  const { act, react } =
    shared === null ? {} : await readTextActionPrompts(path.join(folder, "agent-prompts.json"));
  const retail =
    shared === null ? undefined : createTauRetail({ bundle: await loadTauBenchBundle(folder) });

  function agentOf(strategy: RecordedSolve["strategy"]): Agent {
    const toolCalling: ToolCallingOptions = {
      parser: messageParser,
      toolUsePolicy: toolUsePolicies.first,
      unknownTools: "perform",
    };
    switch (strategy) {
      case "act":
        return createTextActionAgent({ strategy, prompt: act! });
      case "react":
        return createTextActionAgent({ strategy, prompt: react! });
      case "few-shot":
        return createFewShotAgent({ ...toolCalling, examples: recordedExamples });
      case "tool-calling":
        return createToolCallingAgent(toolCalling);
    }
  }

  async function play(
    { strategy, task_index, max_num_steps }: RecordedSolve,
    { texts, users, maxFormatErrors }: Script,
  ) {
    const engine = createScriptedEngine(texts.map((text) => ({ outputIds: characterIds(text) })));
    const agent = agentOf(strategy);
    const environment = {
      ...retail!,
      policyText: recordedPolicy,
      tools: strategy === "act" || strategy === "react" ? recordedTools : retail!.tools,
    };
    const renderer = createCharacterRenderer();
    const shownTools: (readonly ToolDefinition[])[] = [];
    const episode = await playEpisode(
      {
        task: retail!.task("test", task_index),
        rolloutId: "recorded",
        groupId: "recorded",
        sampleIndex: 0,
        seed: recordedSeed,
      },
      {
        environment,
        user: createScriptedUser({ lines: users }),
        engine,
        renderer: {
          ...renderer,
          prompt: (conversation) => {
            shownTools.push(conversation.tools);
            return renderer.prompt(conversation);
          },
        },
        agent,
        sampling: {},
        limits: { ...defaultLimits, maxTurns: max_num_steps, maxFormatErrors },
        now: () => 0,
      },
      { signal: new AbortController().signal },
    );
    for (const sample of toSamples(episode.segments, episode, episode)) {
      expect(verifySample(sample)).toEqual([]);
    }
    engine.assertDrained();
    const prompts = await Promise.all(
      engine.requests.map(({ promptIds }) => renderer.codec.decode([...promptIds])),
    );
    return { episode, prompts, hasTools: shownTools.flat().length > 0 };
  }

  const finished = records.filter(({ result }) => result !== undefined);
  const raising = records.filter(({ raises }) => raises !== undefined);
  const mistaken = raising.filter(({ kind }) => kind !== withoutPrice);
  const unpriced = raising.filter(({ kind }) => kind === withoutPrice);

  test("are all tried", () => {
    expect(finished.length + mistaken.length + unpriced.length).toBe(records.length);
    expect(records.length).toBeGreaterThan(0);
  });

  test.each(finished)("$strategy: $kind ($id)", async (record) => {
    const texts = record.completions.map(textOf);
    const { episode, prompts, hasTools } = await play(record, {
      texts,
      users: record.users,
      maxFormatErrors: 1,
    });
    const { messages, reward, reward_info } = record.result!;
    expect(episode.messages.map(ownForm)).toEqual(messages.map(recordedForm));
    expect(prompts).toEqual(promptsOf(episode.messages, texts).slice(0, record.calls));
    expect([hasTools]).toEqual([...new Set(record.call_has_tools)]);
    expect(episode.reward).toBe(reward);
    expect(episode.outcome).toBe(reward_info === null ? "truncated" : "completed");
    expect(episode.rewardDetails).toMatchObject(reward_info ?? { done: false });
  });

  test.each(mistaken)("$strategy: $kind ($id), as shown to the policy", async (record) => {
    const { episode } = await play(record, {
      texts: [...record.completions.map(textOf), "bye"],
      users: [...record.users, "###STOP###"],
      maxFormatErrors: 10,
    });
    expect(episode).toMatchObject({ outcome: "completed", stopReason: "user-left", reward: 0 });
    const [step] = episode.turns[0]!.steps;
    expect(step).toMatchObject({ result: "refused", isError: true });
    expect(step!.observation).toMatch(/^Error: /);
    const isText = record.strategy === "act" || record.strategy === "react";
    expect(episode.messages[3]).toMatchObject(
      isText
        ? { role: "user", content: `API output: ${step!.observation}` }
        : { role: "tool", content: step!.observation },
    );
  });

  test.each(unpriced)("$strategy: $kind ($id) does not matter", async (record) => {
    const { episode } = await play(record, {
      texts: record.completions.map(textOf),
      users: record.users,
      maxFormatErrors: 1,
    });
    expect(episode).toMatchObject({ outcome: "completed", stopReason: "user-left", reward: 0 });
  });

  test.each(mistaken)(
    "$strategy: $kind ($id), ended as in the original with maxFormatErrors: 1",
    async (record) => {
      const { episode, prompts } = await play(record, {
        texts: record.completions.map(textOf),
        users: record.users,
        maxFormatErrors: 1,
      });
      expect(prompts).toHaveLength(record.calls);
      expect(episode).toMatchObject({
        outcome: "truncated",
        stopReason: "format-errors",
        reward: 0,
      });
    },
  );
});

interface Script {
  readonly texts: readonly string[];
  readonly users: readonly string[];
  readonly maxFormatErrors: number;
}

/**
 * A completion as the policy's text: its content, or, if it calls tools, the complete message,
 * which `messageParser` reads again. The recording has completions of a server that had parsed them
 * already.
 */
function textOf(recorded: RecordedSolve["completions"][number]): string {
  const completion = (Array.isArray(recorded) ? recorded[0] : recorded) as RecordedCompletion;
  if (typeof completion === "string") return completion;
  return callsOf(completion).length === 0 ? (completion.content ?? "") : JSON.stringify(completion);
}

function callsOf({ tool_calls }: RecordedMessage) {
  return (tool_calls ?? []).flatMap((call) => (call.function === null ? [] : [call.function]));
}

const messageParser: ToolCallParser = {
  name: "message",
  aliases: [],
  dialects: [],
  markers: [],
  parse(text, { tools }) {
    if (!text.startsWith('{"role"')) {
      return { compat: { normalText: text, calls: [], raises: false }, attempts: [] };
    }
    const message = JSON.parse(text) as RecordedMessage;
    const attempts = callsOf(message).map(({ name, arguments: argumentsText }): Attempt => {
      const status = statusOf(name, argumentsText, tools);
      return { status, diagnostics: [], raw: text, span: [0, text.length], name, argumentsText };
    });
    return { compat: { normalText: message.content ?? "", calls: [], raises: false }, attempts };
  },
  createStream: () => {
    throw new Error("not streamed");
  },
};

function statusOf(
  name: string,
  argumentsText: string,
  tools: readonly ToolDefinition[],
): AttemptStatus {
  let value: PyValue;
  try {
    value = parsePythonJson(argumentsText);
  } catch {
    return "invalid-json";
  }
  if (!tools.some((tool) => tool.name === name)) return "unknown-tool";
  return isPyDict(value) ? "ok" : "non-object-arguments";
}

/** A message without the ids of its calls, which each side makes up for itself. */
interface MessageForm {
  readonly role: string;
  readonly content: string;
  readonly calls?: readonly { readonly name: string; readonly argumentsText: string }[];
  readonly tool?: string;
}

function ownForm(message: Message): MessageForm {
  const { role, content } = message;
  if (role === "tool") return { role, content, tool: message.name };
  if (role === "assistant" && message.toolCalls !== undefined) {
    const calls = message.toolCalls.map(({ name, argumentsText }) => ({ name, argumentsText }));
    return { role, content, calls };
  }
  return { role, content };
}

function recordedForm(message: RecordedMessage): unknown {
  const { role, content, content_sha256, name } = message;
  if (content_sha256 !== undefined) return { role, content: hashedAs(content_sha256) };
  const calls = callsOf(message).map((call) => ({
    name: call.name,
    argumentsText: call.arguments,
  }));
  return {
    role,
    content: content ?? "",
    ...(calls.length !== 0 && { calls }),
    ...(name !== undefined && { tool: name }),
  };
}

/** Equals the text of that SHA-256. */
function hashedAs(sha256: string): unknown {
  return expect.toSatisfy(
    (text: string) => createHash("sha256").update(text).digest("hex") === sha256,
  );
}

/**
 * The policy's expected prompt before each of its turns: all earlier messages, its own as sampled.
 */
function promptsOf(messages: readonly Message[], texts: readonly string[]): string[] {
  const prompts: string[] = [];
  let shown = "";
  for (const { role, content } of messages) {
    if (role === "assistant") prompts.push(`${shown}<|open|>assistant\n`);
    const text = role === "assistant" ? texts[prompts.length - 1] : content;
    shown += `<|open|>${role}\n${text}<|stop|>`;
  }
  return prompts;
}

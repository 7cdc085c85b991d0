import {
  trace,
  type Attributes,
  type Context,
  type Span,
  type SpanStatus,
  type TracerProvider,
} from "@opentelemetry/api";
import { afterEach, describe, expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import { preparedEngine, says, switchCall } from "../episode/lamp-episode.fixture.ts";
import { playEpisode } from "../episode/play-episode.ts";
import { RolloutError } from "../errors.ts";
import { characterIds } from "../testing/character-renderer.ts";
import { lamps, lampSetup } from "./lamp-run.fixture.ts";
import { traceSetup } from "./run-tracer.ts";
import type { StartRunOptions } from "./start-run-options.ts";

interface NotedSpan {
  readonly name: string;
  readonly parent: string | undefined;
  readonly attributes: Attributes;
  /** As it was set, in the order in which it was. */
  readonly statuses: SpanStatus[];
  hasEnded: boolean;
}

/** Registers an SDK that collects spans; `onEnd` runs in its span processor. */
function noteSpans(onEnd: (name: string) => void = () => {}): readonly NotedSpan[] {
  const spans: NotedSpan[] = [];
  const names = new Map<Span, string>();
  const startSpan = (
    name: string,
    options: { readonly attributes?: Attributes } = {},
    parentContext?: Context,
  ) => {
    const parent = parentContext && trace.getSpan(parentContext);
    const noted: NotedSpan = {
      name,
      parent: parent && names.get(parent),
      hasEnded: false,
      statuses: [],
      attributes: { ...options.attributes },
    };
    spans.push(noted);
    const span = {
      isRecording: () => true,
      setAttributes: (more: Attributes) => Object.assign(noted.attributes, more),
      setAttribute: (key: string, value: string) => (noted.attributes[key] = value),
      setStatus: (status: SpanStatus) => noted.statuses.push(status),
      end: () => {
        noted.hasEnded = true;
        onEnd(name);
      },
    } as unknown as Span;
    names.set(span, name);
    return span;
  };
  trace.setGlobalTracerProvider({ getTracer: () => ({ startSpan }) } as unknown as TracerProvider);
  return spans;
}

afterEach(() => trace.disable());

const troubles: RolloutError[] = [];
afterEach(() => void troubles.splice(0));

async function play(
  engine: Engine,
  model?: string,
  change: Partial<StartRunOptions["setup"]> = {},
) {
  const environment = lamps(1);
  const lamp = lampSetup({ environment, engine });
  const setup = {
    ...traceSetup({ ...lamp, sampling: { temperature: 0.5 }, ...change }, model),
    onTrouble: (trouble: RolloutError) => void troubles.push(trouble),
  };
  const task = environment.task("test", 0);
  const place = { task, rolloutId: "lamp/0#1", groupId: "lamp/0", sampleIndex: 1, seed: 0 };
  return await playEpisode(place, setup, { signal: new AbortController().signal });
}

describe("traceSetup()", () => {
  test("makes spans of an episode and its calls, by the GenAI conventions", async () => {
    const spans = noteSpans();
    const { reward } = await play(preparedEngine([says(switchCall), says("Goodbye!")]), "qwen");
    expect(reward).toBe(1);
    const agent = "invoke_agent tool-calling";
    expect(spans.map(({ name, parent }) => [name, parent])).toEqual([
      [agent, undefined],
      ["user reply", agent],
      ["text_completion qwen", agent],
      ["execute_tool switch", agent],
      ["text_completion qwen", agent],
      ["user reply", agent],
      ["score", agent],
    ]);
    expect(spans.every(({ hasEnded }) => hasEnded)).toBe(true);
    const [episode, , turn, tool] = spans;
    expect(episode!.attributes).toEqual({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "tool-calling",
      "gen_ai.conversation.id": "lamp/0#1",
      "turnwright.task.id": "lamp/test/0",
      "turnwright.environment": "lamp",
      "turnwright.outcome": "completed",
      "turnwright.stop_reason": "user-left",
      "turnwright.reward": 1,
      "turnwright.turn_count": 2,
    });
    expect(turn!.attributes).toMatchObject({
      "gen_ai.operation.name": "text_completion",
      "gen_ai.request.model": "qwen",
      "gen_ai.conversation.id": "lamp/0#1",
      "gen_ai.request.temperature": 0.5,
      "gen_ai.usage.output_tokens": characterIds(switchCall).length,
      "gen_ai.response.finish_reasons": ["stop"],
    });
    expect(tool!.attributes).toEqual({
      "gen_ai.operation.name": "execute_tool",
      "gen_ai.tool.name": "switch",
    });
  });

  test("names failures", async () => {
    const spans = noteSpans();
    const error = new RolloutError("engine/timeout", "Cannot sample");
    const engine: Engine = { ...preparedEngine([]), generate: () => Promise.reject(error) };
    expect((await play(engine)).outcome).toBe("failed");
    const failed = spans.filter(({ attributes }) => attributes["error.type"] === "engine/timeout");
    expect(failed.map(({ name }) => name)).toEqual([
      "invoke_agent tool-calling",
      "text_completion",
    ]);
  });

  test("gives only the code of a failure, because its message may quote a key", async () => {
    const key = "sk-live-0123456789abcdef";
    const refused = new Error(`401: the key ${key} is not known`);
    const spans = noteSpans();
    await play({ ...preparedEngine([]), generate: () => Promise.reject(refused) });
    const environment = lamps(1);
    const broken = { ...environment, open: () => Promise.reject(refused) };
    await play(preparedEngine([]), undefined, { environment: broken });
    expect(troubles.map(({ message }) => message.includes(key))).toEqual([true, true]);
    const failed = spans.filter(({ statuses }) => statuses.length > 0);
    expect(
      failed.map(({ name, attributes, statuses }) => [name, attributes["error.type"], statuses]),
    ).toEqual([
      ["invoke_agent tool-calling", "engine/exception", [{ code: 2 }]],
      ["text_completion", "Error", [{ code: 2 }]],
      ["invoke_agent tool-calling", "environment/exception", [{ code: 2 }]],
    ]);
    expect(JSON.stringify(spans)).not.toContain(key);
  });

  test.each([
    ["a policy call", "text_completion"],
    ["a tool call", "execute_tool switch"],
    ["the score", "score"],
    ["an episode", "invoke_agent tool-calling"],
  ])(
    "an SDK that throws at the end of %s changes nothing, and is reported once",
    async (_, name) => {
      const spans = noteSpans((ended) => {
        if (ended === name) throw new TypeError("the exporter's queue is full");
      });
      const episode = await play(preparedEngine([says(switchCall), says("Goodbye!")]));
      expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
      expect(spans.every(({ hasEnded }) => hasEnded)).toBe(true);
      expect(troubles.map(({ code, message }) => [code, message])).toEqual([
        ["internal/tracer", "Cannot trace lamp/0#1: the exporter's queue is full"],
      ]);
    },
  );

  test("an SDK that returns no span has no effect", async () => {
    const startSpan = (): never => {
      throw new TypeError("the SDK was shut down");
    };
    trace.setGlobalTracerProvider({
      getTracer: () => ({ startSpan }),
    } as unknown as TracerProvider);
    const episode = await play(preparedEngine([says(switchCall), says("Goodbye!")]));
    expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
    expect(troubles.map(({ message }) => message)).toEqual([
      "Cannot trace lamp/0#1: the SDK was shut down",
    ]);
  });

  test("an engine without an answer is blamed for that alone", async () => {
    noteSpans();
    const engine = { ...preparedEngine([]), generate: () => Promise.resolve(undefined as never) };
    const episode = await play(engine);
    expect(episode.failure?.party).toBe("engine");
    expect(troubles.map(({ party }) => party)).toEqual(["engine"]);
  });

  test("passes calls through if no SDK is registered", async () => {
    const { reward } = await play(preparedEngine([says(switchCall), says("Goodbye!")]));
    expect(reward).toBe(1);
  });
});

test("an engine of a class keeps all of its methods when it is traced", async () => {
  class OwnEngine implements Engine {
    get kind(): string {
      return "own";
    }

    async generate(): Promise<never> {
      return await Promise.reject(new Error("it samples nothing"));
    }

    async score(): Promise<readonly number[]> {
      return await Promise.resolve([-1]);
    }

    async describe() {
      return await Promise.resolve({ kind: this.kind, logprobConvention: "tempered" } as const);
    }

    async load() {
      return await Promise.resolve({ workers: [], silent: [] });
    }

    async close(): Promise<void> {}
  }
  const { engine } = traceSetup(lampSetup({ environment: lamps(1), engine: new OwnEngine() }));
  expect(engine.kind).toBe("own");
  expect(await engine.describe()).toEqual({ kind: "own", logprobConvention: "tempered" });
  expect(await engine.score?.({ ids: [1, 2], from: 1, sampling: {} })).toEqual([-1]);
  expect(await engine.load?.()).toEqual({ workers: [], silent: [] });
  await engine.close();
});

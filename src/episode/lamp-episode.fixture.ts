import { expect } from "vitest";
import type { Agent } from "../agent/agent.ts";
import { createToolCallingAgent } from "../agent/tool-calling-agent.ts";
import { toolUsePolicies, type ToolUsePolicy } from "../agent/tool-use-policy.ts";
import type { Engine, GenerateRequest, Generation } from "../engine/engine.ts";
import type { Action, Environment, Step } from "../environment/environment.ts";
import { oneToolEnvironment } from "../environment/one-tool-environment.fixture.ts";
import type { RolloutError } from "../errors.ts";
import type { Clock } from "../async/clock.ts";
import { findToolCallParser } from "../../packages/tool-parsers/src/registry.ts";
import type { Renderer } from "../renderer/renderer.ts";
import { characterIds, createCharacterRenderer } from "../testing/character-renderer.ts";
import { toSamples } from "../trajectory/sample.ts";
import { verifySample } from "../trajectory/verify-sample.ts";
import { createScriptedUser } from "../user/scripted-user.ts";
import type { User, UserLine } from "../user/user.ts";
import type { EpisodeSetup } from "./episode-setup.ts";
import { defaultLimits, type EpisodeLimits } from "./limits.ts";
import { playEpisode } from "./play-episode.ts";

/** A lamp: one tool that switches it on, and a user that leaves on a goodbye. */
export function lamp(onStep?: (action: Action) => Step | undefined): Environment {
  return oneToolEnvironment({
    name: "lamp",
    tool: { name: "switch", parameters: { type: "object" } },
    policyText: "You switch the lamp.",
    instruction: "Turn the lamp on.",
    open() {
      let isOn = false;
      return {
        call() {
          isOn = true;
          return "on";
        },
        score: (isDone) => ({ reward: isOn && isDone ? 1 : 0, details: { isOn } }),
      };
    },
    onStep,
  });
}

/** Its only task. */
export const lampTask = lamp().task("test", 0);

/** A prepared reaction of the engine. */
export type Reply = Partial<Generation> | Error | "hang";

/** An engine with prepared replies. It keeps the requests that it gets. */
export function preparedEngine(
  replies: readonly Reply[],
): Engine & { readonly requests: GenerateRequest[] } {
  const requests: GenerateRequest[] = [];
  return {
    kind: "prepared",
    requests,
    async generate(request, { signal } = {}) {
      requests.push({ ...request, promptIds: [...request.promptIds] });
      const reply = replies[requests.length - 1];
      if (reply === undefined) throw new Error("no reply is prepared");
      if (reply instanceof Error) throw reply;
      if (reply === "hang") {
        return await new Promise((_, reject) => {
          signal?.addEventListener("abort", () => reject(signal.reason as Error));
        });
      }
      const outputIds = reply.outputIds ?? [];
      return {
        outputIds,
        logprobs: outputIds.map((id) => -(id % 7) / 8),
        finish: { type: "stop" },
        pieces: [
          { requestId: "r", tokenCount: outputIds.length, policyVersion: "1", finish: "stop" },
        ],
        discarded: [],
        ...reply,
      };
    },
    describe: async () => ({ kind: "prepared", logprobConvention: "tempered" }),
    close: async () => {},
  };
}

/** A turn that switches the lamp on. */
export const switchCall = '<tool_call>\n{"name": "switch", "arguments": {}}\n</tool_call>';

/** A turn of the given words. */
export function says(text: string): Partial<Generation> {
  return { outputIds: characterIds(text) };
}

/** Plays an episode with the lamp, and checks its record. */
export async function play(
  replies: readonly Reply[],
  options: {
    lines?: readonly UserLine[];
    environment?: Environment;
    limits?: Partial<EpisodeLimits>;
    signal?: AbortSignal;
    toolUsePolicy?: ToolUsePolicy;
    /** Default: one that gives the replies. */
    engine?: Engine;
    user?: User;
    /** Default: one that calls tools in Qwen's format. */
    agent?: Agent;
    clock?: Clock;
    /** Default: a clock that stands still. */
    now?: () => number;
    renderer?: Renderer;
  } = {},
) {
  const engine = preparedEngine(replies);
  const troubles: RolloutError[] = [];
  const setup: EpisodeSetup = {
    environment: options.environment ?? lamp(),
    user:
      options.user ??
      createScriptedUser({
        lines: options.lines ?? ["Lamp on, please.", { text: "Bye.", leaves: true }],
      }),
    engine: options.engine ?? engine,
    renderer: options.renderer ?? createCharacterRenderer(),
    agent:
      options.agent ??
      createToolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: options.toolUsePolicy ?? toolUsePolicies.many,
      }),
    sampling: {},
    limits: { ...defaultLimits, ...options.limits },
    now: options.now ?? (() => 1000),
    onTrouble: (trouble) => troubles.push(trouble),
    ...(options.clock !== undefined && { clock: options.clock }),
  };
  const episode = await playEpisode(
    { task: lampTask, rolloutId: "lamp/test/0#0", groupId: "lamp/test/0", sampleIndex: 0, seed: 0 },
    setup,
    { signal: options.signal ?? new AbortController().signal },
  );
  const samples = toSamples(episode.segments, episode, episode);
  for (const sample of samples)
    expect(verifySample(JSON.parse(JSON.stringify(sample)))).toEqual([]);
  return { episode, engine, troubles };
}

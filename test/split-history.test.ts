import { expect, test } from "vitest";
import { createToolCallingAgent } from "../src/agent/tool-calling-agent.ts";
import { toolUsePolicies } from "../src/agent/tool-use-policy.ts";
import type { Engine, GenerateRequest } from "../src/engine/engine.ts";
import { oneToolEnvironment } from "../src/environment/one-tool-environment.fixture.ts";
import { defaultLimits } from "../src/episode/limits.ts";
import { playEpisode } from "../src/episode/play-episode.ts";
import { findReasoningParser } from "../packages/tool-parsers/src/reasoning/registry.ts";
import { findToolCallParser } from "../packages/tool-parsers/src/registry.ts";
import { createRenderer } from "../src/renderer/create-renderer.ts";
import { modelCodec, modelFolder } from "../src/tokenizer/real-tokenizers.fixture.ts";
import { toSamples } from "../src/trajectory/sample.ts";
import { verifySample } from "../src/trajectory/verify-sample.ts";
import { createScriptedUser } from "../src/user/scripted-user.ts";

const call = '<tool_call>\n{"name": "track", "arguments": {}}\n</tool_call>';
/** The policy's samples, turn by turn: Qwen3 thinks before it speaks or calls. */
const sampled = [
  `<think>\nLook it up.\n</think>\n\n${call}<|im_end|>`,
  "<think>\nTell them.\n</think>\n\nIt is on its way.<|im_end|>",
  `<think>\nLook again.\n</think>\n\n${call}<|im_end|>`,
  "<think>\nGood news.\n</think>\n\nIt is here.<|im_end|>",
  "<think>\nSay goodbye.\n</think>\n\nYou are welcome.<|im_end|>",
];

async function play(historyPolicy: "keep" | "split") {
  const codec = await modelCodec("qwen3");
  const requests: GenerateRequest[] = [];
  const engine: Engine = {
    kind: "prepared",
    async generate(request) {
      requests.push({ ...request, promptIds: [...request.promptIds] });
      const outputIds = await codec.encode(sampled[requests.length - 1]!);
      const tokenCount = outputIds.length;
      return {
        outputIds,
        logprobs: outputIds.map((id) => -((id % 13) + 1) / 16),
        finish: { type: "stop" },
        pieces: [{ requestId: request.requestId, tokenCount, policyVersion: "3", finish: "stop" }],
        discarded: [],
      };
    },
    describe: async () => ({ kind: "prepared", logprobConvention: "tempered" }),
    close: async () => {},
  };
  const environment = oneToolEnvironment({
    name: "parcel",
    tool: { name: "track", parameters: { type: "object", properties: {} } },
    policyText: "You track parcels.",
    open: () => ({
      call: () => "moving",
      score: (isDone) => ({ reward: isDone ? 1 : 0, details: {} }),
    }),
  });
  const reasoning = findReasoningParser("qwen3");
  const episode = await playEpisode(
    {
      task: environment.task("test", 0),
      rolloutId: "parcel/test/0#0",
      groupId: "parcel/test/0",
      sampleIndex: 0,
      seed: 0,
    },
    {
      environment,
      engine,
      user: createScriptedUser({
        lines: ["Where is it?", "And now?", "Thanks!", { text: "Bye.", leaves: true }],
      }),
      renderer: await createRenderer({ modelDir: modelFolder("qwen3"), codec, historyPolicy }),
      agent: createToolCallingAgent({
        parser: findToolCallParser("qwen25"),
        toolUsePolicy: toolUsePolicies.many,
        splitReasoning: (text, { opened }) => {
          const parts = reasoning.parse(text, {
            toolCallParserActive: true,
            forceReasoning: opened,
          });
          return { reasoning: parts.reasoning, rest: parts.normalText };
        },
      }),
      sampling: {},
      limits: defaultLimits,
      now: () => 0,
    },
    { signal: new AbortController().signal },
  );
  return { codec, episode, requests };
}

test("`split` starts a segment if Qwen3's template drops the policy's reasoning", async () => {
  const { codec, episode, requests } = await play("split");
  expect(episode).toMatchObject({ outcome: "completed", reward: 1 });
  expect(episode.segments.map(({ turns }) => turns.map(({ turnIndex }) => turnIndex))).toEqual([
    [0, 1],
    [2, 3],
    [4],
  ]);
  const texts = await Promise.all(
    episode.segments.map(async ({ tokenIds, promptLength }) => [
      await codec.decode(tokenIds.slice(0, promptLength)),
      await codec.decode(tokenIds.slice(promptLength)),
    ]),
  );
  // Within a question the reasoning stays in sight; before the next one it is gone.
  expect(
    texts.map(([prompt]) => /Look it up|Tell them|Look again|Good news/.test(prompt!)),
  ).toEqual([false, false, false]);
  expect(texts[0]![1]).toContain("Look it up.");
  expect(texts[1]![0]).toContain("It is on its way.");
  // Each request was the ledger of its segment, and each row stands on its own.
  const ledgers = episode.segments.flatMap(({ tokenIds, turns }) =>
    turns.map(({ start }) => tokenIds.slice(0, start)),
  );
  expect(requests.map(({ promptIds }) => promptIds)).toEqual(ledgers);
  for (const sample of toSamples(episode.segments, episode, episode)) {
    expect(verifySample(JSON.parse(JSON.stringify(sample)))).toEqual([]);
  }
  expect(episode.messages[2]).toMatchObject({ role: "assistant", reasoning: "\nLook it up.\n" });
});

test("`keep` trains the same turns in one segment", async () => {
  const { episode } = await play("keep");
  expect(episode.segments.map(({ turns }) => turns.length)).toEqual([5]);
});

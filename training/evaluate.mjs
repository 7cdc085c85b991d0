// Plays storefront tasks with a model in the reference engine and prints how well it does.
//
//   node training/evaluate.mjs --model DIR [--split test] [--tasks 200] [--samples 4] [--show N]
//
// `--show N` prints the first N conversations as well.
import { setMaxListeners } from "node:events";
import { parseArgs } from "node:util";
import { createStorefront, createStorefrontUser } from "../dist/environments/storefront/index.js";
import { createToolCallingAgent } from "../dist/src/agent/tool-calling-agent.js";
import { toolUsePolicies } from "../dist/src/agent/tool-use-policy.js";
import { createReferenceEngine } from "../dist/src/engine/reference/index.js";
import { defaultLimits } from "../dist/src/episode/limits.js";
import { playEpisode } from "../dist/src/episode/play-episode.js";
import { findToolCallParser } from "../dist/packages/tool-parsers/src/registry.js";
import { createRenderer } from "../dist/src/renderer/create-renderer.js";

const { values } = parseArgs({
  options: {
    model: { type: "string" },
    split: { type: "string", default: "test" },
    tasks: { type: "string", default: "200" },
    samples: { type: "string", default: "4" },
    threads: { type: "string", default: "2" },
    temperature: { type: "string", default: "1" },
    show: { type: "string", default: "0" },
  },
});

if (values.model === undefined) {
  console.error("Usage: node training/evaluate.mjs --model DIR");
  process.exit(2);
}

const environment = createStorefront();
const engine = await createReferenceEngine({
  modelDir: values.model,
  threads: Number(values.threads),
});
const setup = {
  environment,
  user: createStorefrontUser(),
  engine,
  renderer: await createRenderer({ modelDir: values.model }),
  agent: createToolCallingAgent({
    parser: findToolCallParser("qwen25"),
    toolUsePolicy: toolUsePolicies.many,
  }),
  sampling: { temperature: Number(values.temperature), seed: 0 },
  limits: { ...defaultLimits, maxTokensPerTurn: 128, maxContextTokens: 2048 },
  now: Date.now,
};

const { signal } = new AbortController();
// Every episode listens to it.
setMaxListeners(0, signal);
const startedAtMs = Date.now();
const groups = await Promise.all(
  Array.from({ length: Number(values.tasks) }, async (_, index) => {
    const task = environment.task(values.split, index);
    return await Promise.all(
      Array.from({ length: Number(values.samples) }, (_, sampleIndex) =>
        playEpisode(
          {
            task,
            rolloutId: `${task.id}#${sampleIndex}`,
            groupId: task.id,
            sampleIndex,
            seed: index * 100 + sampleIndex,
          },
          setup,
          { signal },
        ),
      ),
    );
  }),
);
const seconds = (Date.now() - startedAtMs) / 1000;
await engine.close();

const episodes = groups.flat();
const failed = episodes.filter(({ outcome }) => outcome === "failed");
if (failed.length > 0) console.error(`${failed.length} failed: ${failed[0].failure.message}`);
const mean = (numbers) => numbers.reduce((sum, one) => sum + one, 0) / numbers.length;
const rewardOf = ({ reward = 0 }) => reward;
for (const { messages, reward, taskId } of episodes.slice(0, Number(values.show))) {
  console.log(`\n${taskId}: reward ${reward}`);
  for (const { role, content, toolCalls = [] } of messages.slice(1)) {
    const calls = toolCalls.map(({ name, argumentsText }) => `${name} ${argumentsText}`);
    console.log(`  ${role}: ${[content, ...calls].join(" ").trim()}`);
  }
}
const sampled = episodes.flatMap(({ turns }) => turns.map((turn) => turn.sampledTokenCount));
const sum = sampled.reduce((total, one) => total + one, 0);
const lengths = episodes.map(({ segments }) => segments.at(-1)?.tokenIds.length ?? 0);
console.log({
  episodes: episodes.length,
  meanReward: mean(episodes.map(rewardOf)),
  byLevel: [1, 2, 3, 4, 5].map((level) =>
    mean(episodes.filter(({ taskIndex }) => 1 + (taskIndex % 5) === level).map(rewardOf)),
  ),
  mixedGroups: mean(groups.map((group) => (new Set(group.map(rewardOf)).size > 1 ? 1 : 0))),
  outcomes: Object.fromEntries(
    [...new Set(episodes.map(({ stopReason }) => stopReason))].map((reason) => [
      reason,
      episodes.filter(({ stopReason }) => stopReason === reason).length,
    ]),
  ),
  turnsPerEpisode: sampled.length / episodes.length,
  sampledTokensPerEpisode: sum / episodes.length,
  tokensPerEpisode: mean(lengths),
  longestEpisode: Math.max(...lengths),
  seconds,
  sampledTokensPerSecond: Math.round(sum / seconds),
});

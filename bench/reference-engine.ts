import { mkdtemp, rm } from "node:fs/promises";
import { availableParallelism, tmpdir } from "node:os";
import path from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { writeRandomModel } from "../src/engine/reference/index.ts";
import { createReferenceEngine } from "../src/engine/reference/index.ts";
import type { ScoringEngine } from "../src/engine/reference/index.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { cpuMs } from "./cpu-time.ts";

const VOCABULARY = 2_944;
/** The middle of an episode of the shipped policy. */
const CONTEXT = 1_000;
/** Tokens at the start of every episode: the policy text and the tools. */
const SHARED = 577;
/** Tokens that the environment adds in a turn. */
const DELTA = 60;
/** The interval of the event loop's monitor, in milliseconds. It measures between two ticks. */
const RESOLUTION_MS = 1;
/** The shape of the shipped policy: 1.6 million parameters. */
const CONFIG = {
  architectures: ["LlamaForCausalLM"],
  vocab_size: VOCABULARY,
  hidden_size: 128,
  intermediate_size: 384,
  num_hidden_layers: 5,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  head_dim: 64,
  max_position_embeddings: 4_096,
  tie_word_embeddings: true,
} as const;

/**
 * Measures sampling and prompt reading of the engine in this process. The weights are random, because a model's speed
 * depends on its shape only.
 */
export async function benchReferenceEngine(): Promise<BenchFigure[]> {
  const folder = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  try {
    await writeRandomModel(folder, { config: CONFIG });
    const figures = await measureStart(folder);
    const all = availableParallelism();
    for (const threads of new Set([1, all])) {
      const engine = await createReferenceEngine({ modelDir: folder, threads });
      figures.push(...(await measureTokens(engine, threads)));
      if (threads === all) figures.push(...(await measureEpisodes(engine, threads)));
      await engine.close();
    }
    return figures;
  } finally {
    await rm(folder, { recursive: true });
  }
}

function figureAt(threads: number) {
  const at = `${threads} ${threads === 1 ? "thread" : "threads"}`;
  return (figure: string, value: number, unit = "tokens/s"): BenchFigure => ({
    bench: "reference-engine",
    figure,
    value,
    unit,
    at,
  });
}

/** Measures the time from loading to the first token, and the memory for it. */
async function measureStart(folder: string): Promise<BenchFigure[]> {
  const figure = figureAt(availableParallelism());
  const before = process.memoryUsage.rss();
  const start = performance.now();
  const engine = await createReferenceEngine({ modelDir: folder });
  const created = performance.now();
  await turn(engine, { promptIds: [1], tokens: 1, session: "start" });
  const sampled = performance.now();
  const bytes = process.memoryUsage.rss() - before;
  await engine.close();
  return [
    figure("start", created - start, "ms"),
    figure("from there to the first token", sampled - created, "ms"),
    figure("memory resident by then", bytes / 2 ** 20, "MiB"),
  ];
}

async function measureTokens(engine: ScoringEngine, threads: number): Promise<BenchFigure[]> {
  const figure = figureAt(threads);
  // Warms up the compiled code.
  await sample(engine, { sequences: 16, tokens: 50, seed: 1 });
  const single = await sample(engine, { sequences: 1, tokens: 500, seed: 2 });
  const batched = await sample(engine, { sequences: 128, tokens: 40, seed: 3 });
  const read = await readPrompts(engine);
  const added = await readDeltas(engine);
  return [
    figure(`sampled, 1 sequence after ${CONTEXT} tokens`, single.rate),
    figure("CPU to sample a token, 1 sequence", single.cpuUs, "µs"),
    figure(`sampled, 128 sequences after ${CONTEXT} tokens, ${SHARED} shared`, batched.rate),
    figure("CPU to sample a token, 128 sequences", batched.cpuUs, "µs"),
    figure(`read, 32 prompts of ${CONTEXT} tokens`, read.rate),
    figure("CPU to read a token of these", read.cpuUs, "µs"),
    figure(`read, 128 times ${DELTA} tokens after ${CONTEXT}`, added.rate),
    figure("CPU to read a token of these ends", added.cpuUs, "µs"),
  ];
}

async function measureEpisodes(engine: ScoringEngine, threads: number): Promise<BenchFigure[]> {
  const figure = figureAt(threads);
  const episodes = await playEpisodes(engine);
  return [
    figure("sampled, 128 episodes of 8 turns in groups of 4", episodes.rate),
    figure("CPU to sample a token of these, all turns read", episodes.cpuUs, "µs"),
    figure("prompt tokens of these from the cache", episodes.cachedShare * 100, "%"),
    figure("pause of the event loop meanwhile, 99th percentile", episodes.pauseMs, "ms"),
  ];
}

/** Returns random ids, repeatable by seed. */
function toIds(length: number, seed: number): number[] {
  let state = seed;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % VOCABULARY;
  });
}

interface Measured {
  readonly rate: number;
  readonly cpuUs: number;
}

async function measure(tokenCount: number, work: () => Promise<void>): Promise<Measured> {
  const start = performance.now();
  const cpu = await cpuMs(work);
  const seconds = (performance.now() - start) / 1_000;
  return { rate: tokenCount / seconds, cpuUs: (cpu * 1_000) / tokenCount };
}

let callCount = 0;

function turn(
  engine: ScoringEngine,
  call: { promptIds: readonly number[]; tokens: number; session: string },
) {
  return engine.generate({
    promptIds: call.promptIds,
    sampling: { seed: 1 },
    maxNewTokens: call.tokens,
    stopTokenIds: [],
    requestId: `bench-${callCount++}`,
    sessionId: call.session,
  });
}

/** Returns a prompt from the middle of an episode: the shared start, then its own part. */
function toPrompt(seed: number): number[] {
  return [...toIds(SHARED, 90_000), ...toIds(CONTEXT - SHARED, seed)];
}

/** Measures sampling only. The prompts are in the cache before the measurement. */
async function sample(
  engine: ScoringEngine,
  { sequences, tokens, seed }: Record<"sequences" | "tokens" | "seed", number>,
): Promise<Measured> {
  const run = (count: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: sequences }, (_, index) =>
        turn(engine, {
          promptIds: toPrompt(seed * 1_000 + index),
          tokens: count,
          session: `sample-${seed}-${index}`,
        }),
      ),
    );
  await run(1);
  return await measure(sequences * tokens, async () => void (await run(tokens)));
}

/** Measures prompts without a common start. */
async function readPrompts(engine: ScoringEngine): Promise<Measured> {
  const count = 32;
  return await measure(count * CONTEXT, async () => {
    await Promise.all(
      Array.from({ length: count }, (_, index) =>
        turn(engine, {
          promptIds: toIds(CONTEXT, 50_000 + index),
          tokens: 1,
          session: `read-${index}`,
        }),
      ),
    );
  });
}

/** Measures reading the new end of prompts that are otherwise in the cache. */
async function readDeltas(engine: ScoringEngine): Promise<Measured> {
  const run = (delta: number): Promise<unknown> =>
    Promise.all(
      Array.from({ length: 128 }, (_, index) =>
        turn(engine, {
          promptIds: [...toPrompt(60_000 + index), ...toIds(delta, 70_000 + index)],
          tokens: 1,
          session: `delta-${index}`,
        }),
      ),
    );
  await run(0);
  return await measure(128 * DELTA, async () => void (await run(DELTA)));
}

/**
 * Measures episodes as a run plays them. All first prompts share their start, and those of a group are
 * equal. Each turn's prompt is the conversation so far with the environment's tokens. Episodes end at
 * about 1,450 tokens.
 */
async function playEpisodes(
  engine: ScoringEngine,
): Promise<Measured & { cachedShare: number; pauseMs: number }> {
  const [groups, samples, turns, tokens] = [32, 4, 8, 40];
  const policyText = toIds(SHARED, 90_000);
  let promptCount = 0;
  let cachedCount = 0;
  const play = async (group: number, index: number): Promise<void> => {
    let promptIds = [...policyText, ...toIds(DELTA, 91_000 + group)];
    for (let turnIndex = 0; turnIndex < turns; turnIndex++) {
      const session = `episode-${group}-${index}`;
      const { outputIds, cachedTokenCount } = await turn(engine, { promptIds, tokens, session });
      promptCount += promptIds.length;
      cachedCount += cachedTokenCount ?? 0;
      const added = toIds(DELTA, 95_000 + group * 100 + index * 10 + turnIndex);
      promptIds = [...promptIds, ...outputIds, ...added];
    }
  };
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  delay.enable();
  const measured = await measure(groups * samples * turns * tokens, async () => {
    await Promise.all(
      Array.from({ length: groups * samples }, (_, index) =>
        play(Math.floor(index / samples), index % samples),
      ),
    );
  });
  delay.disable();
  return {
    ...measured,
    cachedShare: cachedCount / promptCount,
    pauseMs: delay.percentile(99) / 1e6 - RESOLUTION_MS,
  };
}

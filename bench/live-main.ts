import { setMaxListeners } from "node:events";
import { monitorEventLoopDelay } from "node:perf_hooks";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import type * as demonstrating from "../environments/storefront/demonstrate.ts";
import type * as shop from "../environments/storefront/storefront.ts";
import type * as play from "../src/episode/play-episode.ts";
import { instantEngine } from "./instant-engine.ts";
import type { LiveFigures } from "./live-episodes.ts";
import type { StorefrontPlay } from "./storefront-play.ts";
import type * as storefront from "./storefront-play.ts";

// A process of its own: node live-main.js FOLDER LIVE WAVES [TURNS]
// Plays with the build in the folder, so that an older build can be compared. TURNS sets the length of each episode:
// the agent looks the order up repeatedly.
const [folder = "", live = "", waves = "", turns = "0"] = process.argv.slice(2);
const liveCount = Number(live);
const latencyMs = 200;

async function load<Module>(file: string): Promise<Module> {
  return (await import(pathToFileURL(path.resolve(folder, "dist", file)).href)) as Module;
}

const { prepareStorefront } = await load<typeof storefront>("bench/storefront-play.js");
const { playEpisode } = await load<typeof play>("src/episode/play-episode.js");
const episodeCount = liveCount * Number(waves);
const prepared = await prepareStorefront({ episodeCount, latencyMs });
const { plan } = prepared;
const setup = Number(turns) > 0 ? await lengthened(prepared) : prepared.setup;
const { signal } = new AbortController();
setMaxListeners(0, signal);
let turnCount = 0;
const counted = { ...setup, onTurn: () => void turnCount++ };
const waiting = plan[Symbol.iterator]();

/** Plays with an engine that samples the given number of turns in each episode. */
async function lengthened({ plan, setup }: StorefrontPlay): Promise<StorefrontPlay["setup"]> {
  const shopFolder = "environments/storefront";
  const { createStorefront } = await load<typeof shop>(`${shopFolder}/storefront.js`);
  const { demonstrate } = await load<typeof demonstrating>(`${shopFolder}/demonstrate.js`);
  const environment = createStorefront();
  const { codec } = setup.renderer!;
  const scripts = new Map<string, (readonly number[])[]>();
  for (const { task, seed, rolloutId } of plan) {
    const shown = await demonstrate(environment.task("train", task.index), { seed });
    const texts = shown.turns.map(({ text }) => text);
    const place = texts.findIndex((text) => text.includes("get_order"));
    if (place < 0) throw new Error(`no call of task ${task.id} looks an order up`);
    while (texts.length < Number(turns)) texts.splice(place, 0, texts[place]!);
    const ids = texts.map(async (text) => await codec.encode(`${text}<|im_end|>`));
    scripts.set(rolloutId, (await Promise.all(ids)).toReversed());
  }
  return {
    ...setup,
    engine: instantEngine(({ sessionId }) => scripts.get(sessionId)!.pop()!, { latencyMs }),
  };
}

/** Plays one episode after the other, and keeps none of them. */
async function keepPlaying(): Promise<void> {
  for (let next = waiting.next(); next.done !== true; next = waiting.next()) {
    const { outcome, taskId } = await playEpisode(next.value, counted, { signal });
    if (outcome === "failed") throw new Error(`the episode of task ${taskId} failed`);
  }
}

globalThis.gc?.();
const before = process.memoryUsage.rss();
let peak = before;
const watch = setInterval(() => {
  peak = Math.max(peak, process.memoryUsage.rss());
}, 100);
const resolution = 5;
const delay = monitorEventLoopDelay({ resolution });
await sleep(50);
delay.enable();
const startedAt = performance.now();
const cpuBefore = process.cpuUsage();
await Promise.all(Array.from({ length: liveCount }, keepPlaying));
const elapsedSeconds = (performance.now() - startedAt) / 1000;
const cpu = process.cpuUsage(cpuBefore);
delay.disable();
clearInterval(watch);

/** Node's histogram has the time between two checks, which is 5 ms without a delay. */
const lateMs = (ns: number): number => Math.max(ns / 1e6 - resolution, 0);
process.send?.({
  turnsPerSecond: turnCount / elapsedSeconds,
  turnsPerCpuSecond: (turnCount * 1e6) / (cpu.user + cpu.system),
  delayMs: lateMs(delay.percentile(99)),
  worstDelayMs: lateMs(delay.max),
  memoryMiB: ((peak - before) / 2 ** 20 / liveCount) * 1000,
} satisfies LiveFigures);
process.disconnect?.();

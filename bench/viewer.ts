import { type ChildProcess, spawn } from "node:child_process";
import { createWriteStream, existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { once } from "node:events";
import { loadavg, tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { type Browser, chromium, type Page } from "playwright-core";
import type { BenchFigure } from "./bench-figure.ts";
import { qwen3Folder } from "./bench-model.ts";

const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const episodeCount = 10_000;
const rowTokenCounts = [100_000, 1_000_000];
const largeFileBytes = 2_000_000_000;
const mebibyte = 1024 * 1024;

/**
 * Measures the viewer on large runs: time to first use, and the CPU of page and server until then; page
 * nodes, page heap, the server's memory. On a busy machine the CPU is the reliable figure.
 */
export async function* benchViewer(): AsyncGenerator<BenchFigure> {
  if (!existsSync(executablePath)) {
    process.stderr.write(`viewer: skipped, ${executablePath} is not there (CHROMIUM names one)\n`);
    return;
  }
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  const browser = await chromium.launch({
    executablePath,
    args: ["--no-sandbox", "--enable-precise-memory-info"],
  });
  try {
    yield* await measureList(browser, path.join(dir, "list"));
    for (const tokenCount of rowTokenCounts) {
      yield* await measureRow(browser, path.join(dir, `row-${tokenCount}`), tokenCount);
    }
    yield* await measureServer(browser, path.join(dir, "large"));
  } finally {
    await browser.close();
    await rm(dir, { recursive: true });
  }
}

async function measureList(browser: Browser, dir: string): Promise<BenchFigure[]> {
  await writeRun(dir, episodeCount, () => 100);
  await using server = await serve(dir);
  await using opened = await openPage(browser);
  const { page } = opened;
  const about = { bench: "viewer", at: episodeCount };
  const figure = "its episodes listed";
  return [
    { ...about, figure: "a run's folder read", value: server.seconds, unit: "s" },
    ...(await measureTime(server, page, { ...about, figure }, async () => {
      await page.goto(server.url);
      await page.locator(".list-row").first().waitFor();
    })),
  ];
}

async function measureRow(
  browser: Browser,
  dir: string,
  tokenCount: number,
): Promise<BenchFigure[]> {
  await writeRun(dir, 1, () => tokenCount);
  await using server = await serve(dir);
  await using opened = await openPage(browser);
  const { page } = opened;
  // The tokenizer is loaded once, and does not count.
  await page.goto(`${server.url}#/`);
  await page.locator(".list-row").first().waitFor();
  const figure = "a row of so many tokens usable";
  const about = { bench: "viewer", at: tokenCount };
  const times = await measureTime(server, page, { ...about, figure }, async () => {
    await page.locator(".list-row").first().click();
    await page.locator(".token").first().waitFor();
  });
  let mostNodes = 0;
  for (let part = 0; part <= 10; part++) {
    await page.evaluate(
      `(() => { const strip = document.querySelector("token-strip");
        strip.scrollTop = strip.scrollHeight * ${part / 10}; })()`,
    );
    await page.evaluate(
      "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))",
    );
    mostNodes = Math.max(mostNodes, await page.locator(".token").count());
  }
  const heap = await page.evaluate<number>("performance.memory.usedJSHeapSize");
  return [
    ...times,
    {
      ...about,
      figure: "most token nodes while it is scrolled through",
      value: mostNodes,
      unit: "",
    },
    { ...about, figure: "the page's heap", value: heap / mebibyte, unit: "MiB" },
  ];
}

async function measureServer(browser: Browser, dir: string): Promise<BenchFigure[]> {
  const tokenCount = 100_000;
  const bytesPerToken = 27;
  const count = Math.ceil(largeFileBytes / (tokenCount * bytesPerToken));
  await writeRun(dir, count, () => tokenCount);
  await using server = await serve(dir);
  await using opened = await openPage(browser);
  const { page } = opened;
  await page.goto(server.url);
  await page.locator(".list-row").first().click();
  await page.locator(".token").first().waitFor();
  const status = await readFile(`/proc/${server.child.pid}/status`, "utf8");
  const peak = Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) * 1024;
  const about = { bench: "viewer", at: "2 GB of samples" };
  return [
    { ...about, figure: "a run's folder read", value: server.seconds, unit: "s" },
    { ...about, figure: "most memory of the server", value: peak / mebibyte, unit: "MiB" },
  ];
}

/** Measures the duration of an action, and the CPU of page and server in it. */
async function measureTime(
  { child }: Served,
  page: Page,
  about: Pick<BenchFigure, "bench" | "at" | "figure">,
  work: () => Promise<void>,
): Promise<BenchFigure[]> {
  const devtools = await page.context().newCDPSession(page);
  // The running time of the thread, without that of other threads.
  await devtools.send("Performance.enable", { timeDomain: "threadTicks" });
  const pageSeconds = async (): Promise<number> => {
    const { metrics } = await devtools.send("Performance.getMetrics");
    return metrics.find(({ name }) => name === "TaskDuration")?.value ?? Number.NaN;
  };
  const before = { page: await pageSeconds(), server: await cpuSeconds(child.pid!) };
  const startedAt = performance.now();
  await work();
  const value = (performance.now() - startedAt) / 1000;
  const spent = {
    page: (await pageSeconds()) - before.page,
    server: (await cpuSeconds(child.pid!)) - before.server,
  };
  const { figure } = about;
  return [
    { ...about, value, unit: "s" },
    { ...about, figure: `${figure}: the page's processor time`, value: spent.page, unit: "s" },
    { ...about, figure: `${figure}: the server's processor time`, value: spent.server, unit: "s" },
    { ...about, figure: `${figure}: load of the machine`, value: loadavg()[0]!, unit: "" },
  ];
}

/** Returns the CPU of a process so far, in steps of 10 ms. */
async function cpuSeconds(pid: number): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, "utf8")).split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

interface Served extends AsyncDisposable {
  readonly child: ChildProcess;
  readonly url: string;
  /** From the command to the address. */
  readonly seconds: number;
}

async function serve(dir: string): Promise<Served> {
  const main = fileURLToPath(new URL("../src/cli/main.js", import.meta.url));
  const startedAt = performance.now();
  const child = spawn(process.execPath, [main, "view", dir, "--port", "0"], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [address] = (await once(child.stdout, "data")) as [Buffer];
  const seconds = (performance.now() - startedAt) / 1000;
  const ended = once(child, "close");
  return {
    child,
    url: address.toString().trim(),
    seconds,
    async [Symbol.asyncDispose]() {
      child.kill("SIGINT");
      await ended;
    },
  };
}

async function openPage(browser: Browser): Promise<AsyncDisposable & { readonly page: Page }> {
  const page = await browser.newPage({ viewport: { width: 1600, height: 1000 } });
  return { page, [Symbol.asyncDispose]: () => page.close() };
}

/** Writes a run's folder with episodes of thirteen kilobytes, and a training row for each. */
async function writeRun(
  dir: string,
  count: number,
  tokensOf: (index: number) => number,
): Promise<void> {
  await mkdir(dir, { recursive: true });
  const settings = { engine: "reference", model: qwen3Folder() };
  const manifest = { format: 1, turnwright: "bench", configuration: {}, found: { settings } };
  await writeFile(path.join(dir, "run.json"), JSON.stringify(manifest));
  await writeFile(path.join(dir, "summary.json"), JSON.stringify({ end: "finished" }));
  const episodes = createWriteStream(path.join(dir, "episodes.jsonl"));
  const samples = createWriteStream(path.join(dir, "samples.jsonl"));
  let row = { tokenCount: -1, text: "" };
  for (let index = 0; index < count; index++) {
    const rolloutId = `bench/${index >> 2}#${index & 3}`;
    episodes.write(`${episodeLine(rolloutId, index)}\n`);
    const tokenCount = tokensOf(index);
    if (tokenCount !== row.tokenCount) row = { tokenCount, text: rowText(tokenCount) };
    const start = `{"format":1,"rolloutId":${JSON.stringify(rolloutId)},`;
    if (!samples.write(`${start}${row.text}\n`)) await once(samples, "drain");
  }
  for (const stream of [episodes, samples]) {
    stream.end();
    await once(stream, "finish");
  }
}

function episodeLine(rolloutId: string, index: number): string {
  const groupId = rolloutId.replace(/#\d$/, "");
  const turnCount = 10;
  const turn = {
    text: "x".repeat(400),
    finish: "stop",
    sampledTokenCount: 20,
    promptTokenCount: 100,
    attemptCounts: {},
    engineMs: 5,
    environmentMs: 1,
    steps: [{ source: "user", callId: "c", observation: "y".repeat(400), result: "acted" }],
  };
  return JSON.stringify({
    format: 1,
    rolloutId,
    groupId,
    taskId: groupId,
    environment: "bench",
    split: "test",
    taskIndex: index >> 2,
    sampleIndex: index & 3,
    seed: 0,
    outcome: "completed",
    stopReason: "user-left",
    reward: index % 3 === 0 ? 1 : 0,
    counts: {
      turnCount,
      sampledTokenCount: 200,
      tokenCount: 1_000,
      toolCallCount: 3,
      formatErrorCount: 0,
      attemptCounts: {},
    },
    userUsage: { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 },
    startedAtMs: index,
    durationMs: 1_000 + index,
    messages: [{ role: "user", content: "z".repeat(3_000) }],
    turns: Array.from({ length: turnCount }, (_, turnIndex) => ({ turnIndex, ...turn })),
    sampleHashes: [],
  });
}

/** The part of a row after its rollout's id: turns of two hundred sampled ids, with a hundred other ids between them. */
function rowText(tokenCount: number): string {
  const isSampled = (index: number): boolean => index >= 100 && index % 300 >= 100;
  const list = (valueOf: (index: number) => number | string): readonly (number | string)[] =>
    Array.from({ length: tokenCount }, (_, index) => valueOf(index));
  const turns = [];
  for (let start = 100; start < tokenCount; start += 300) {
    const end = Math.min(start + 200, tokenCount);
    turns.push({
      turnIndex: turns.length,
      start,
      end,
      finish: "stop",
      promptHash: "0",
      outputHash: "0",
    });
  }
  return JSON.stringify({
    groupId: "bench/0",
    taskId: "bench/0",
    segment: 0,
    tokenIds: list((index) => (index * 7919) % 140_000),
    promptLength: 100,
    lossMask: list((index) => (isSampled(index) ? 1 : 0)),
    logprobs: list((index) => (isSampled(index) ? -((index * 31) % 977) / 100 : 0)),
    policyVersions: list((index) => (isSampled(index) ? "7" : "")),
    turns,
    reward: 1,
    outcome: "completed",
    stopReason: "user-left",
    metadata: {},
  }).slice(1);
}

import { fork, spawn, spawnSync, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import net from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { Redactor } from "../../src/secrets/redactor.ts";
import type { AttemptPlayer } from "../../src/run/attempt/attempt-player.ts";
import { HandOut } from "../../src/queue/hand-out/hand-out.ts";
import { QueueStore } from "../../src/queue/store/queue-store.ts";
import { QueueWorker } from "../../src/queue/worker/queue-worker.ts";
import type { BenchFigure } from "../bench-figure.ts";
import { cpuMs, median } from "../cpu-time.ts";
import { playIntoFolder } from "../play-into-folder.ts";
import { benchTerms, prepareBurning, queuedEpisodes } from "./queue-play.ts";
import type { StorefrontPlay } from "../storefront-play.ts";

const repetitions = 3;

/** CPU of each episode's environment in the comparison of two workers with one, in milliseconds. */
const burnMs = 60;

const waitingAttempts = 100_000;

/** Measures the cost of the queue, the gain of a second worker, and the store's memory for many attempts. */
export async function* benchQueue(): AsyncGenerator<BenchFigure> {
  const program = ["valkey-server", "redis-server"].find(
    (name) => spawnSync(name, ["--version"]).status === 0,
  );
  if (program === undefined) {
    process.stderr.write("bench queue: skipped, neither valkey-server nor redis-server is here\n");
    return;
  }
  await using server = await startServer(program);
  yield await benchOverhead(server.url);
  yield await benchSecondWorker(server.url);
  yield* benchWaiting(server.url);
}

async function benchOverhead(url: string): Promise<BenchFigure> {
  const plain: number[] = [];
  const queued: number[] = [];
  // The first round compiles the code of the others.
  for (let repetition = 0; repetition <= repetitions; repetition++) {
    const here = await prepareBurning(0);
    const plainMs = await cpuMs(async () => await play(here));
    const elsewhere = await prepareBurning(0);
    await using store = await QueueStore.connect({ url });
    await using workerStore = await QueueStore.connect({ url });
    await using _worker = await QueueWorker.start({
      store: workerStore,
      setup: elsewhere.setup,
      terms: benchTerms,
      concurrency: 64,
      redactor: new Redactor(),
    });
    await using handOut = await handOutOf(store, `cpu-${repetition}`);
    const queuedMs = await cpuMs(async () => await play(elsewhere, handOut.player()));
    if (repetition === 0) continue;
    plain.push(plainMs);
    queued.push(queuedMs);
  }
  const [value, baseline] = [median(queued), median(plain)];
  return {
    bench: "queue",
    figure: "CPU of an attempt that the queue costs, hand-out and worker together",
    value: (value - baseline) / queuedEpisodes,
    unit: "ms",
  };
}

async function benchSecondWorker(url: string): Promise<BenchFigure> {
  const one: number[] = [];
  const two: number[] = [];
  for (let repetition = 0; repetition < repetitions; repetition++) {
    one.push(await perSecond(url, 1));
    two.push(await perSecond(url, 2));
  }
  const [value, baseline] = [median(two), median(one)];
  return {
    bench: "queue",
    figure: `attempts per second with two workers, against one; ${burnMs} ms of CPU each`,
    value,
    unit: "1/s",
    baseline,
    ratio: value / baseline,
  };
}

async function perSecond(url: string, workerCount: number): Promise<number> {
  const prepared = await prepareBurning(burnMs);
  const file = fileURLToPath(new URL("queue-worker.js", import.meta.url));
  const workers = Array.from({ length: workerCount }, () => fork(file, [url, String(burnMs)]));
  await Promise.all(workers.map(async (worker) => await once(worker, "message")));
  try {
    await using store = await QueueStore.connect({ url });
    await using handOut = await handOutOf(store, `workers-${workerCount}`);
    const startedAt = performance.now();
    await play(prepared, handOut.player());
    return (queuedEpisodes * 1_000) / (performance.now() - startedAt);
  } finally {
    for (const worker of workers) {
      worker.send("stop");
      await once(worker, "exit");
    }
  }
}

async function* benchWaiting(url: string): AsyncGenerator<BenchFigure> {
  const { plan, setup } = await prepareBurning(0);
  await using store = await QueueStore.connect({ url });
  const before = await memoryOf(store);
  const stops: AbortController[] = [];
  await using handOut = await handOutOf(store, "waiting");
  const player = handOut.player();
  const planned = [...plan];
  const startedAt = performance.now();
  for (let index = 0; index < waitingAttempts; index++) {
    const { task, seed, groupId, sampleIndex } = planned[index % planned.length]!;
    const rolloutId = `${groupId}~${index}#0`;
    const one = { task, seed, groupId, sampleIndex, rolloutId, groupIndex: index };
    const stop = new AbortController();
    stops.push(stop);
    player.play(one, setup, { signal: stop.signal, groupLeft: 1 }).catch(() => {});
  }
  const key = "turnwright:run-waiting:prioritized";
  while ((await store.redis.zcard(key)) < waitingAttempts) {
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  const seconds = (performance.now() - startedAt) / 1_000;
  const at = `${waitingAttempts} attempts wait`;
  const megabytes = ((await memoryOf(store)) - before) / 2 ** 20;
  yield { bench: "queue", figure: "memory of the store", value: megabytes, unit: "MiB", at };
  const figure = "attempts that are handed out per second";
  yield { bench: "queue", figure, value: waitingAttempts / seconds, unit: "1/s", at };
  for (const stop of stops) stop.abort();
  await store.redis.flushall();
}

async function memoryOf({ redis }: QueueStore): Promise<number> {
  return Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
}

async function handOutOf(store: QueueStore, run: string): Promise<HandOut> {
  return await HandOut.open({
    store,
    run,
    environment: "storefront",
    terms: benchTerms,
    sampling: {},
    isRecorded: true,
  });
}

async function play({ plan, setup }: StorefrontPlay, player?: AttemptPlayer): Promise<void> {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  try {
    await playIntoFolder(dir, { plan, setup, concurrency: 64, ...(player && { player }) });
  } finally {
    await rm(dir, { recursive: true });
  }
}

async function startServer(program: string): Promise<AsyncDisposable & { readonly url: string }> {
  const probe = net.createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address() as net.AddressInfo;
  probe.close();
  await once(probe, "close");
  const args = ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"];
  const child: ChildProcess = spawn(program, args, { stdio: "ignore" });
  return {
    url: `redis://127.0.0.1:${port}`,
    async [Symbol.asyncDispose]() {
      child.kill();
      await once(child, "exit");
    },
  };
}

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { systemClock } from "../../src/async/clock.ts";
import { HandOut } from "../../src/queue/hand-out/hand-out.ts";
import type { FromWorker } from "../../src/queue/local/channel-message.ts";
import { localClients } from "../../src/queue/local/local-clients.ts";
import { LocalStore } from "../../src/queue/local/local-store.ts";
import { ServedStore } from "../../src/queue/local/serve-store.ts";
import { connectHere } from "../../src/queue/local/store-connection.ts";
import { openSharedFolder } from "../../src/queue/place/shared-folder.ts";
import { QueueStore } from "../../src/queue/store/queue-store.ts";
import type { AttemptPlayer } from "../../src/run/attempt/attempt-player.ts";
import { playIntoFolder } from "../play-into-folder.ts";
import type { BenchFigure } from "../bench-figure.ts";
import { cpuMs, median } from "../cpu-time.ts";
import { longShape, prepareLong, type LongPlay } from "./long-play.ts";

const attemptCount = 24;
const repetitions = 2;

/** The number of workers in the projection. */
const workerCount = 16;

/**
 * Measures the CPU that the hand-out spends on a turn of long attempts. The workers are simulated: another process
 * answers each job with an attempt that it played before.
 */
export async function benchHandOut(): Promise<BenchFigure[]> {
  const packed: number[] = [];
  const parsed: number[] = [];
  const played: number[] = [];
  // The first round compiles the code of the others.
  for (let repetition = 0; repetition <= repetitions; repetition++) {
    const here = await turnMs(4, async (long, dir) => await play(long, dir));
    const bytes = await turnMs(attemptCount, handOutWith());
    const rows = await turnMs(attemptCount, handOutWith(parsing));
    if (repetition === 0) continue;
    played.push(here);
    packed.push(bytes);
    parsed.push(rows);
  }
  const [value, baseline, worker] = [median(packed), median(parsed), median(played)];
  const at = `${longShape.turns} turns, 142,000 tokens`;
  const figure = (name: string, value: number, unit: BenchFigure["unit"]) =>
    ({ bench: "hand-out", figure: name, value, unit, at }) as const;
  return [
    {
      ...figure("CPU of the hand-out for a turn, against parsing and writing again", value, "ms"),
      baseline,
      ratio: baseline / value,
    },
    figure("CPU of a turn where it is played", worker, "ms"),
    figure("share of a worker's turn that the hand-out spends", value / worker, "x"),
    figure(
      `turns per second of ${workerCount} workers on cores of their own, against one`,
      Math.min(workerCount, worker / value),
      "x",
    ),
  ];
}

/** Returns the CPU of this process for a turn, in milliseconds. */
async function turnMs(
  count: number,
  work: (long: LongPlay, dir: string) => Promise<void>,
): Promise<number> {
  const long = await prepareLong(count);
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-bench-"));
  try {
    const ms = await cpuMs(async () => await work(long, dir));
    return ms / (count * longShape.turns);
  } finally {
    await rm(dir, { recursive: true });
  }
}

/** Plays attempts in another process. */
function handOutWith(wrap: (player: AttemptPlayer) => AttemptPlayer = (player) => player) {
  return async (long: LongPlay, dir: string): Promise<void> => {
    const shared = path.join(dir, "shared");
    const run = path.basename(dir);
    const store = new LocalStore({ now: systemClock.now, wallNow: Date.now });
    await using client = await QueueStore.over(localClients(() => connectHere(store, systemClock)));
    const place = await openSharedFolder(shared);
    const about = { environment: "code-reader", terms: {}, sampling: {}, isRecorded: true };
    await using handOut = await HandOut.open({ store: client, run, place, ...about });
    const file = fileURLToPath(new URL("simulated-worker.js", import.meta.url));
    const child = fork(file, [shared, run]);
    const served = new ServedStore(store, (message) => {
      if (child.connected) child.send(message);
    });
    child.on("message", (message: FromWorker) => {
      if (message.type === "commands") served.receive(message);
    });
    try {
      await play(long, path.join(dir, "run"), wrap(handOut.player()));
    } finally {
      child.disconnect();
      await once(child, "exit");
    }
  };
}

/** Returns copies of the episodes, which the run has to check and write as those of any player. */
function parsing(player: AttemptPlayer): AttemptPlayer {
  return { ...player, play: async (...given) => ({ ...(await player.play(...given)) }) };
}

async function play({ plan, setup }: LongPlay, dir: string, player?: AttemptPlayer): Promise<void> {
  const given = player && { player };
  await playIntoFolder(dir, { plan, setup, concurrency: 16, keepsEpisodes: false, ...given });
}

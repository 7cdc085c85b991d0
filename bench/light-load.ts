import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Client } from "undici";
import type { Engine } from "../src/engine/engine.ts";
import type { TokenIds } from "../src/engine/token-id.ts";
import { playIntoFolder } from "./play-into-folder.ts";
import type { User, UserSession } from "../src/user/user.ts";
import { toArray } from "../src/values/to-array.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { median } from "./cpu-time.ts";
import { type LoopbackPlay, withLoopback } from "./loopback-play.ts";

/** Episodes at once. No episode waits for another. */
const concurrency = 4;
/** One attempt at each of 32 tasks. */
const episodeCount = 32;
/** The policy's time for a turn, in milliseconds. */
const latencyMs = 30;
/** The number of rounds. The first one is left out. */
const repetitions = 4;

/** The clock of a running episode. */
interface Watch {
  /** The time of the policy's last answer. Absent before the first. */
  answeredAt?: number;
  /** The user's time since then, in milliseconds. */
  userMs: number;
}

/** Measured times, in milliseconds, one entry a turn. */
interface Times {
  /** From the policy's answer to the next request, without the user. */
  readonly between: number[];
  /** A request over HTTP, including the server's time. */
  readonly asking: number[];
}

/**
 * Measures the time that Turnwright adds to a turn under light load: τ-bench retail over loopback HTTP, recorded, four
 * episodes at once, a policy that takes 30 ms for a turn. For a request, it is the extra time over a request that is
 * only sent and read.
 */
export async function benchLightLoad(): Promise<BenchFigure[]> {
  const measured = await withLoopback(async (play) => {
    const times: Times = { between: [], asking: [] };
    let longest: TokenIds = [];
    for (let repetition = 0; repetition < repetitions; repetition++) {
      const found: Times = { between: [], asking: [] };
      longest = await playLightly(play, `run-${repetition}`, found);
      if (repetition === 0) continue;
      times.between.push(...found.between);
      times.asking.push(...found.asking);
    }
    // The prompts of an episode grow turn by turn.
    const ids = toArray(longest.slice(0, longest.length / 2));
    const plain = median(await askPlainly(play.engineUrl, ids));
    const between = median(times.between);
    const asking = median(times.asking) - plain;
    const figure = (name: string, value: number): BenchFigure => ({
      bench: "light-load",
      figure: name,
      value,
      unit: "ms",
      at: concurrency,
    });
    return [
      figure("added to a turn, median", between + asking),
      figure("of it from an answer to the next request, without the user", between),
      figure("the same, 99th percentile", percentile(times.between, 0.99)),
      figure(`of it in the request, which takes ${plain.toPrecision(2)} if only sent`, asking),
    ];
  });
  if (measured !== undefined) return measured;
  process.stderr.write("light-load: no τ-bench bundle at hand, nothing is measured\n");
  return [];
}

/** Returns the prompt of one of the last requests. */
async function playLightly(
  { setup, folder: parent, planOf }: LoopbackPlay,
  name: string,
  { between, asking }: Times,
): Promise<TokenIds> {
  const watches = new Map<string, Watch>();
  let longest: TokenIds = [];
  const engine: Engine = {
    ...setup.engine,
    async generate(request, options) {
      const watch = watchOf(watches, request.sessionId.slice(0, request.sessionId.indexOf("#")));
      const { answeredAt } = watch;
      if (answeredAt !== undefined) between.push(performance.now() - answeredAt - watch.userMs);
      await sleep(latencyMs);
      const sentAt = performance.now();
      const generation = await setup.engine.generate(request, options);
      watch.answeredAt = performance.now();
      watch.userMs = 0;
      asking.push(watch.answeredAt - sentAt);
      longest = request.promptIds;
      return generation;
    },
  };
  const user = timed(setup.user, (taskId) => watchOf(watches, taskId));
  await playIntoFolder(path.join(parent, name), {
    plan: planOf(episodeCount),
    setup: { ...setup, engine, user },
    concurrency,
    onEpisode: ({ outcome, rolloutId }) => {
      if (outcome !== "completed") throw new Error(`Cannot measure: ${rolloutId} is ${outcome}`);
    },
  });
  return longest;
}

/** Sends the same request repeatedly and reads the streamed answers. Returns the times in milliseconds. */
async function askPlainly(engineUrl: string, ids: readonly number[]): Promise<readonly number[]> {
  const body = JSON.stringify({ input_ids: ids, rid: "plain:1:7;" });
  const times: number[] = [];
  const client = new Client(engineUrl);
  for (let count = 0; count < 200; count++) {
    await sleep(latencyMs / concurrency);
    const sentAt = performance.now();
    const answer = await client.request({ method: "POST", path: "/generate", body });
    await answer.body.bytes();
    times.push(performance.now() - sentAt);
  }
  await client.close();
  return times.slice(times.length / 2);
}

function watchOf(watches: Map<string, Watch>, taskId: string): Watch {
  const known = watches.get(taskId) ?? { userMs: 0 };
  watches.set(taskId, known);
  return known;
}

/** Wraps a user. Adds its time to the clock of its task. */
function timed(user: User, watch: (taskId: string) => Watch): User {
  return {
    ...user,
    open(task, options) {
      const session = user.open(task, options);
      const timedCall = async <Value>(call: () => Promise<Value>): Promise<Value> => {
        const startedAt = performance.now();
        const value = await call();
        watch(task.id).userMs += performance.now() - startedAt;
        return value;
      };
      return new Proxy(session, {
        get(target, name: keyof UserSession) {
          const member: unknown = target[name];
          if (typeof member !== "function") return member;
          return async (...given: unknown[]) =>
            await timedCall(async () => (await Reflect.apply(member, target, given)) as unknown);
        },
      });
    },
  };
}

function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((one, other) => one - other);
  return sorted[Math.min(Math.floor(sorted.length * share), sorted.length - 1)]!;
}

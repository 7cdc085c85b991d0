import { setMaxListeners } from "node:events";
import path from "node:path";
import type { Episode } from "../src/episode/episode.ts";
import { playEpisode } from "../src/episode/play-episode.ts";
import type { RecordPolicy } from "../src/run/recording/read-recording.ts";
import { playIntoFolder } from "./play-into-folder.ts";
import { startRun } from "../src/run/start-run.ts";
import { createPlanSource } from "../src/run/schedule/task-source.ts";
import type { BenchFigure } from "./bench-figure.ts";
import { median } from "./cpu-time.ts";
import { type LoopbackPlay, withLoopback } from "./loopback-play.ts";

/** Episodes at once. */
const concurrency = 512;
/** Episodes of a repetition. Each place plays several, so start and end are a small part, as in a long run. */
const episodeCount = 3 * concurrency;
const repetitions = 3;

/** The result of a repetition. */
interface Pace {
  readonly turnsPerSecond: number;
  readonly cpuMsPerTurn: number;
}

/** The sides, in the order in which they take turns. */
const sides = {
  "bare episodes": playBare,
  "a run that writes nothing": playUnwritten,
  "a run that writes its rows alone": playRowsAlone,
  "a recorded run": playRecorded,
} as const;
type Side = keyof typeof sides;

/**
 * Measures the throughput of a run that writes journal, rows and recording. It is compared with three others: the
 * same run without the recording (`--record none`), a run that writes nothing, and the same episodes without a run.
 * τ-bench retail over loopback HTTP, 512 episodes at once, 1,536 in all. The sides alternate; the first round of each
 * is left out.
 */
export async function benchRecording(): Promise<BenchFigure[]> {
  const measured = await withLoopback(async (play) => {
    const paces: Record<Side, Pace[]> = {
      "bare episodes": [],
      "a run that writes nothing": [],
      "a run that writes its rows alone": [],
      "a recorded run": [],
    };
    for (let repetition = 0; repetition <= repetitions; repetition++) {
      for (const side of Object.keys(sides) as Side[]) {
        const pace = await paceOf(async () => sides[side](play, `run-${repetition}`));
        if (repetition > 0) paces[side].push(pace);
      }
    }
    const middle = (side: Side, key: keyof Pace): number =>
      median(paces[side].map((pace) => pace[key]));
    const others = Object.keys(sides).filter((side) => side !== "a recorded run") as Side[];
    return others.flatMap((other) => [
      toFigure(`turns per second of a recorded run, against ${other}`, "1/s", {
        value: middle("a recorded run", "turnsPerSecond"),
        baseline: middle(other, "turnsPerSecond"),
      }),
      toFigure(`CPU per turn of a recorded run, against ${other}`, "ms", {
        value: middle("a recorded run", "cpuMsPerTurn"),
        baseline: middle(other, "cpuMsPerTurn"),
      }),
    ]);
  });
  if (measured !== undefined) return measured;
  process.stderr.write("recording: no τ-bench bundle at hand, nothing is measured\n");
  return [];
}

/** @param play - Returns the number of turns. */
async function paceOf(play: () => Promise<number>): Promise<Pace> {
  const startedAt = performance.now();
  const before = process.cpuUsage();
  const turnCount = await play();
  const { user, system } = process.cpuUsage(before);
  const seconds = (performance.now() - startedAt) / 1000;
  return {
    turnsPerSecond: turnCount / seconds,
    cpuMsPerTurn: (user + system) / 1000 / turnCount,
  };
}

async function playBare({ setup, planOf }: LoopbackPlay): Promise<number> {
  const { signal } = new AbortController();
  // Every episode adds a listener.
  setMaxListeners(0, signal);
  const waiting = planOf(episodeCount)[Symbol.iterator]();
  const played = newCount();
  const keepPlaying = async (): Promise<void> => {
    for (let next = waiting.next(); next.done !== true; next = waiting.next()) {
      played.add(await playEpisode(next.value, setup, { signal }));
    }
  };
  await Promise.all(Array.from({ length: concurrency }, keepPlaying));
  return played.turnCount();
}

async function playUnwritten({ setup, planOf }: LoopbackPlay): Promise<number> {
  const played = newCount();
  const run = startRun({
    source: createPlanSource(planOf(episodeCount)),
    setup,
    grouping: { size: episodeCount / 32, attempts: 1 },
    admission: { concurrency },
    signal: new AbortController().signal,
    onEpisode: (episode) => played.add(episode),
  });
  for await (const _ of run) {
    // The episode itself is not needed.
  }
  await run.result;
  return played.turnCount();
}

async function playRecorded(play: LoopbackPlay, name: string): Promise<number> {
  return await playWritten(play, name, "all");
}

async function playRowsAlone(play: LoopbackPlay, name: string): Promise<number> {
  return await playWritten(play, `${name}-rows`, "none");
}

async function playWritten(
  { setup, planOf, folder: parent }: LoopbackPlay,
  name: string,
  record: RecordPolicy,
): Promise<number> {
  const played = newCount();
  await playIntoFolder(
    path.join(parent, name),
    {
      plan: planOf(episodeCount),
      setup,
      concurrency,
      onEpisode: (episode) => played.add(episode),
    },
    { record },
  );
  return played.turnCount();
}

/** Counts the episodes, and keeps none of them. */
function newCount(): {
  readonly add: (episode: Episode) => void;
  readonly turnCount: () => number;
} {
  let completed = 0;
  let turns = 0;
  return {
    add(episode) {
      if (episode.outcome === "completed") completed++;
      turns += episode.turns.length;
    },
    turnCount() {
      if (completed === episodeCount) return turns;
      throw new Error(`Cannot measure: ${completed} of ${episodeCount} episodes were completed`);
    },
  };
}

function toFigure(
  figure: string,
  unit: "1/s" | "ms",
  { value, baseline }: { readonly value: number; readonly baseline: number },
): BenchFigure {
  const ratio = unit === "ms" ? baseline / value : value / baseline;
  return { bench: "recording", figure, value, unit, baseline, ratio, at: concurrency };
}

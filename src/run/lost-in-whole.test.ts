import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { verifyRun } from "../verify/verify-run.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import {
  fiftyLamps,
  lampList,
  openLamps,
  startLamps,
  switchingEngine,
  takeAll,
} from "./lamp-groups.fixture.ts";
import { boundedSource, createCurriculum, type TaskSource } from "./schedule/task-source.ts";
import { rolloutIdsIn } from "./folder/run-folder.fixture.ts";
import type { RunFolder } from "./folder/run-folder.ts";
import type { StartRunOptions } from "./start-run-options.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-lost-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

/** Ends no episode before `count` are written, so that none is cancelled. */
function endTogether(folder: RunFolder, count: number): void {
  const write = folder.writeEpisode.bind(folder);
  const all = withResolvers();
  let written = 0;
  vi.spyOn(folder, "writeEpisode").mockImplementation(async (episode) => {
    const hash = await write(episode);
    if (++written === count) all.resolve();
    await all.promise;
    return hash;
  });
}

/**
 * Plays a start with two attempts a lamp, of which one is needed; returns the delivered groups and the sampled
 * rollouts.
 */
async function play({
  retryFailed = false,
  failing = "",
  together = 0,
  ...options
}: Partial<StartRunOptions> & {
  retryFailed?: boolean;
  failing?: string;
  together?: number;
} = {}) {
  await using folder = await openLamps(dir, { retryFailed });
  if (together > 0) endTogether(folder, together);
  const sampled: string[] = [];
  const engine = switchingEngine(({ sessionId }) => {
    sampled.push(sessionId);
    return sessionId === failing ? new Error("down") : undefined;
  });
  const run = startLamps({
    source: lampList(2),
    folder,
    engine,
    admission: { concurrency: 1 },
    grouping: { size: 1, started: 2, attempts: 1 },
    ...options,
  });
  const groups = await takeAll(run);
  const { end, progress } = await run.result;
  const handed = groups.map(({ episodes }) => episodes.map(({ rolloutId }) => rolloutId));
  return { end, handed, sampled, notes: folder.notes.length, finished: progress.finished };
}

async function loseLines(file: string, rolloutId: string): Promise<void> {
  const lines = (await readFile(path.join(dir, file), "utf8")).split("\n");
  const kept = lines.filter((line) => !line.includes(`"rolloutId":"${rolloutId}"`));
  expect(kept.length).toBeLessThan(lines.length);
  await writeFile(path.join(dir, file), kept.join("\n"));
}

/** Returns a file's lines, sorted. */
async function linesIn(file: string): Promise<readonly string[]> {
  return (await readFile(path.join(dir, file), "utf8")).split("\n").toSorted();
}

const chosen = (): TaskSource =>
  boundedSource(
    createCurriculum((place) => ({ task: fiftyLamps.task("test", place) })),
    2,
  );

test.each([
  ["", false, lampList(2)],
  [", also where failed ones are played again", true, lampList(2)],
  [", of a source that does not give its tasks again", false, chosen()],
])("a failed attempt of a complete group is restored%s", async (_, retryFailed, source) => {
  const again = () => (source.repeatable === true ? lampList(2) : chosen());
  const failing = "lamp/test/0#0";
  const before = await play({ failing, source: again() });
  expect(before).toMatchObject({ end: "finished", finished: 3 });
  const lines = await linesIn("episodes.jsonl");
  await loseLines("episodes.jsonl", failing);
  const after = await play({ retryFailed, source: again() });
  expect(after).toMatchObject({ end: "finished", finished: 3, sampled: [] });
  expect(await linesIn("episodes.jsonl")).toEqual(lines);
  expect(await verifyRun(dir)).toMatchObject({ isFinished: true, episodes: 3, violations: [] });
  expect(await play({ retryFailed, source: again() })).toMatchObject({ handed: [], sampled: [] });
});

test.each([
  ["episodes.jsonl", 2],
  ["samples.jsonl", 2],
  ["episodes.jsonl", 3],
  ["samples.jsonl", 4],
])(
  "scored attempts of a complete group are restored if %s lost (%d), and make it no larger",
  async (file, count) => {
    const source = lampList(1);
    const grouping = { size: 2, started: 4, attempts: 1 };
    const about = { source, grouping, admission: { concurrency: 4 } };
    await play({ ...about, together: 4 });
    const ids = await rolloutIdsIn(dir, "episodes.jsonl");
    expect(ids).toHaveLength(4);
    const lines = await linesIn("samples.jsonl");
    for (const id of ids.slice(0, count)) await loseLines(file, id);
    const { handed, sampled, notes } = await play(about);
    expect({ sampled, notes }).toEqual({ sampled: [], notes: 1 });
    const now = await rolloutIdsIn(dir, "episodes.jsonl");
    // The attempts that are first in the file complete the group.
    expect(handed).toEqual([now.slice(0, 2).toSorted()]);
    expect(now.toSorted()).toEqual(ids.toSorted());
    expect(await linesIn("samples.jsonl")).toEqual(lines);
    expect(await verifyRun(dir)).toMatchObject({ isFinished: true, episodes: 4, violations: [] });
  },
);

test("a received group is not delivered again after its attempts are restored, and others are delivered once", async () => {
  const about = { redeliver: true, admission: { concurrency: 4 } };
  {
    await using folder = await openLamps(dir);
    endTogether(folder, 4);
    const run = startLamps({
      ...about,
      source: lampList(2),
      folder,
      grouping: { size: 1, started: 2, attempts: 1 },
    });
    await run.result;
    const groups = run[Symbol.asyncIterator]();
    // The first group counts as taken when the second is requested.
    for (let count = 0; count < 2; count++) await groups.next();
    await groups.return?.(undefined);
  }
  const ids = await rolloutIdsIn(dir, "episodes.jsonl");
  expect(ids).toHaveLength(4);
  const lost = [0, 1].map((place) => ids.find((id) => id.startsWith(`lamp/test/${place}#`))!);
  for (const id of lost) await loseLines("samples.jsonl", id);
  const { handed, sampled } = await play(about);
  expect(sampled).toEqual([]);
  expect(handed.map((group) => group.length)).toEqual([1]);
  expect((await rolloutIdsIn(dir, "episodes.jsonl")).toSorted()).toEqual(ids.toSorted());
  expect(await play(about)).toMatchObject({ handed: [] });
});

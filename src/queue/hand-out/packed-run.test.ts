import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { systemClock } from "../../async/clock.ts";
import { InvariantError } from "../../errors.ts";
import type { Episode } from "../../episode/episode.ts";
import { testManifest } from "../../run/folder/run-folder.fixture.ts";
import { RunFolder } from "../../run/folder/run-folder.ts";
import { packedOf } from "../../run/packed/packed-episode.ts";
import { startRun } from "../../run/start-run.ts";
import type { StartRunOptions } from "../../run/start-run-options.ts";
import { Redactor } from "../../secrets/redactor.ts";
import { connectHere } from "../local/store-connection.ts";
import { localClients } from "../local/local-clients.ts";
import { LocalStore } from "../local/local-store.ts";
import { openSharedFolder } from "../place/shared-folder.ts";
import { lampEngine, lampSource, longLampSetup } from "../queue.fixture.ts";
import { QueueStore } from "../store/queue-store.ts";
import { QueueWorker } from "../worker/queue-worker.ts";
import { HandOut } from "./hand-out.ts";

const lampCount = 6;

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-packed-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** Says goodbye in many words, so that each result is a file in the shared place. */
const talkative = lampEngine(({ sessionId }, turn) =>
  turn === 1 ? `Goodbye ${sessionId}! ${"so long ".repeat(6_000)}` : undefined,
);

const open = async (name: string): Promise<RunFolder> =>
  await RunFolder.open(path.join(scratch, name), testManifest, { retryFailed: false });

/** Plays two attempts at each lamp. */
async function play(name: string, options: Partial<StartRunOptions>): Promise<void> {
  await using folder = await open(name);
  const run = startRun({
    source: lampSource(lampCount),
    setup: longLampSetup(talkative),
    grouping: { size: 2 },
    admission: { concurrency: 6 },
    folder,
    ...options,
  });
  for await (const _ of run);
  expect(await run.result).toMatchObject({ end: "finished" });
}

async function playByWorker(name: string, options: Partial<StartRunOptions>): Promise<void> {
  const store = new LocalStore({ now: systemClock.now, wallNow: Date.now });
  const connect = async () =>
    await QueueStore.over(localClients(() => connectHere(store, systemClock)));
  const place = await openSharedFolder(path.join(scratch, `${name}-shared`));
  const terms = {};
  await using _worker = await QueueWorker.start({
    store: await connect(),
    setup: longLampSetup(talkative),
    terms,
    place,
    redactor: new Redactor(),
    concurrency: 6,
    leaseMs: 600_000,
  });
  await using handOut = await HandOut.open({
    store: await connect(),
    run: name,
    environment: "lamp",
    terms,
    place,
    sampling: {},
    isRecorded: true,
  });
  await play(name, { player: handOut.player(), ...options });
}

test("a run writes the bytes of its workers, also if their memory is used again", async () => {
  await play("plain", {});
  const episodes: Episode[] = [];
  const onEpisode = (episode: Episode): void => void episodes.push(episode);
  await playByWorker("packed", { onEpisode, keepsEpisodes: false });
  const rowsOf = async (run: string): Promise<string> =>
    await readFile(path.join(scratch, run, "samples.jsonl"), "utf8");
  expect(await rowsOf("packed")).toBe(await rowsOf("plain"));
  // Opening compares the hashes of all lines.
  await using folder = await open("packed");
  expect(folder.finished).toHaveLength(2 * lampCount);
  expect(folder.lost.size).toBe(0);
  for (const { rolloutId } of folder.finished) {
    const recorded = await folder.recordings.read(rolloutId);
    expect(recorded).toMatchObject({ hasEnded: true });
    expect(recorded!.inputs.inputs.filter(({ type }) => type === "generation")).toHaveLength(2);
  }
  expect(episodes).toHaveLength(2 * lampCount);
  for (const episode of episodes) {
    expect([episode.reward, packedOf(episode)?.turns.length]).toEqual([1, 2]);
    expect(() => episode.segments).toThrow(InvariantError);
  }
});

test("a caller that keeps episodes reads all members of each", async () => {
  const episodes: Episode[] = [];
  await playByWorker("kept", { onEpisode: (episode) => void episodes.push(episode) });
  await using folder = await open("kept");
  const written = await folder.readEpisodes(new Set(episodes.map(({ rolloutId }) => rolloutId)));
  const found = new Map(written.map((episode) => [episode.rolloutId, episode]));
  for (const episode of episodes) {
    expect(packedOf(episode)).toBeDefined();
    const { messages, turns, segments } = found.get(episode.rolloutId)!;
    expect(episode).toMatchObject({ messages, turns, segments });
  }
});

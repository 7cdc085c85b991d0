import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Episode } from "../episode/episode.ts";
import type { Inputs } from "../episode/inputs/input.ts";
import { preparedEngine, says } from "../episode/lamp-episode.fixture.ts";
import { RolloutError, UsageError } from "../errors.ts";
import type { Environment } from "../environment/environment.ts";
import { Redactor } from "../secrets/redactor.ts";
import { withResolvers } from "../async/with-resolvers.ts";
import { faultyFiles } from "./faulty-files.fixture.ts";
import { diskFiles, type Files } from "./disk/files.ts";
import { JsonlJournal } from "./disk/jsonl-journal.ts";
import { lamps, lampSetup, playLamps } from "./lamp-run.fixture.ts";
import { fakeMachine } from "./machine.fixture.ts";
import { scanLines } from "./disk/line-ranges.ts";
import { joinLines, readRecording } from "./recording/read-recording.ts";
import { RecordingJournal, type RecordingStart } from "./recording/recording-journal.ts";
import { RunFolder, type RunManifest } from "./folder/run-folder.ts";
import { testManifest } from "./folder/run-folder.fixture.ts";
import type { RunProgress } from "./run-progress.ts";
import type { RunOptions } from "./run-rollouts.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-recording-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

let pid = 1;
async function open(
  retryFailed = false,
  where = dir,
  { files = diskFiles }: { readonly files?: Files } = {},
): Promise<RunFolder> {
  pid += 1;
  const lock = { machine: fakeMachine({ pid }) };
  return await RunFolder.open(where, testManifest, { retryFailed, lock, files });
}

const environment: Environment = { ...lamps(1), repeatable: true };

/** Plays both attempts at one lamp; returns the requests and the result. */
async function playOn(folder: RunFolder, options: Partial<RunOptions> = {}) {
  const episodes: Episode[] = [];
  await playLamps(folder, environment, {
    ...options,
    onEpisode: (episode) => episodes.push(episode),
  });
  return episodes.toSorted((one, other) => one.sampleIndex - other.sampleIndex);
}

/** Both attempts fail, and the machine goes down before their recordings are closed. */
async function playBrokenLamps(): Promise<void> {
  const outage = new RolloutError("environment/exception", "The bulb is broken");
  {
    await using folder = await open();
    const broken: Environment = {
      ...environment,
      open: async () => await Promise.reject(outage),
    };
    await playLamps(folder, broken);
  }
  const file = path.join(dir, "recording.jsonl");
  const lines = (await readFile(file, "utf8")).split("\n");
  await writeFile(file, lines.filter((line) => !line.includes('"type":"end"')).join("\n"));
}

async function manifestIn(where: string): Promise<RunManifest> {
  return JSON.parse(await readFile(path.join(where, "run.json"), "utf8")) as RunManifest;
}

async function linesOf(file: string): Promise<readonly Record<string, unknown>[]> {
  const text = await readFile(file, "utf8");
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

async function recordedLines(where = dir): Promise<readonly Record<string, unknown>[]> {
  return await linesOf(path.join(where, "recording.jsonl"));
}

async function eventsOf(type: string): Promise<readonly Record<string, unknown>[]> {
  const events = await linesOf(path.join(dir, "events.jsonl"));
  return events.filter((event) => event["type"] === type);
}

const start: RecordingStart = {
  rolloutId: "lamp/test/0#0",
  attempt: 1,
  start: 1,
  groupId: "lamp/test/0",
  groupIndex: 0,
  sampleIndex: 0,
  seed: 0,
  split: "test",
  taskIndex: 0,
  atMs: 0,
};

const late: Inputs = { inputs: [{ type: "late" }], times: [1] };

describe("the recording", () => {
  test("an episode without its row after a crash is played again from its recording", async () => {
    {
      await using folder = await open();
      folder.writeEpisode = async () => await Promise.reject(new UsageError("the machine is gone"));
      await expect(playOn(folder)).rejects.toThrow("the machine is gone");
    }
    const before = (await recordedLines()).filter(({ type }) => type === "inputs");
    expect(before.length).toBeGreaterThan(0);
    await using folder = await open();
    const episodes = await playOn(folder);
    expect(episodes.map(({ attempt, outcome }) => [attempt, outcome])).toEqual([
      [1, "completed"],
      [1, "completed"],
    ]);
    // The turns were not sampled again: they would have been recorded twice.
    const generations = (await recordedLines()).flatMap(({ inputs = [] }) =>
      (inputs as readonly { readonly type: string }[]).filter(({ type }) => type === "generation"),
    );
    expect(generations).toHaveLength(2);
  });

  test("tokens of an earlier start are not counted in this one", async () => {
    let atMs = 1000;
    const setup = {
      ...lampSetup({
        environment,
        engine: {
          ...preparedEngine([]),
          generate: async (...call) => await preparedEngine([says("Goodbye!")]).generate(...call),
        },
      }),
      now: () => (atMs += 10),
    };
    {
      await using folder = await open();
      folder.writeEpisode = async () => await Promise.reject(new UsageError("the machine is gone"));
      await expect(playOn(folder, { setup })).rejects.toThrow("the machine is gone");
    }
    await using folder = await open();
    const seen: RunProgress[] = [];
    const episodes = await playOn(folder, { setup, onProgress: (progress) => seen.push(progress) });
    expect(episodes.map(({ turns }) => turns.map(({ engineMs }) => engineMs > 0))).toEqual([
      [true],
      [true],
    ]);
    const { finished, sampledTokenCount, sampledTokensPerSecond, spentMs } = seen.at(-1)!;
    expect({ finished, sampledTokenCount }).toEqual({ finished: 2, sampledTokenCount: 18 });
    expect(sampledTokensPerSecond).toBe(0);
    expect(spentMs).toEqual({ engine: 0, user: 0, environment: 0 });
  });

  test("a finished episode's inputs are on the disk before its row is", async () => {
    await using folder = await open();
    const inputCounts: number[] = [];
    const write = folder.writeEpisode.bind(folder);
    folder.writeEpisode = async (episode) => {
      const lines = await recordedLines();
      const ids = lines.filter(({ type }) => type === "inputs").map(({ rolloutId }) => rolloutId);
      inputCounts.push(ids.filter((id) => id === episode.rolloutId).length);
      return await write(episode);
    };
    await playOn(folder);
    expect(inputCounts).toEqual([2, 2]);
  });

  test("an episode is not finished if the disk refuses its inputs: it could not be replayed", async () => {
    let writeCount = 0;
    const files = faultyFiles(({ operation, path: file }) => {
      if (operation !== "write" || !file.endsWith("recording.jsonl")) return undefined;
      // There is room again at once, for everything that follows.
      writeCount += 1;
      return writeCount === 1 ? { type: "fail", code: "ENOSPC" } : undefined;
    });
    {
      await using folder = await open(false, dir, { files });
      await expect(playOn(folder)).rejects.toThrow(/^Cannot write .*recording.jsonl: ENOSPC/);
    }
    expect(await readFile(path.join(dir, "episodes.jsonl"), "utf8")).toBe("");
    expect(await readFile(path.join(dir, "samples.jsonl"), "utf8")).toBe("");
    await using folder = await open();
    const ids = (await playOn(folder)).map(({ rolloutId }) => rolloutId);
    expect(ids).toEqual(["lamp/test/0#0", "lamp/test/0#1"]);
    const lines = (await recordedLines()).filter(({ type }) => type === "inputs");
    expect(new Set(lines.map(({ rolloutId }) => rolloutId))).toEqual(new Set(ids));
  });

  test("a failed episode that is played again does not use its recording", async () => {
    await playBrokenLamps();
    await using folder = await open(true);
    const episodes = await playOn(folder);
    expect(episodes.map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
      ["completed", 2],
      ["completed", 2],
    ]);
  });

  test("nor does one with a line that a crashed start removed for that", async () => {
    await playBrokenLamps();
    // As the crash left it: the line is gone, and no event reports it.
    await writeFile(path.join(dir, "episodes.jsonl"), "");
    await using folder = await open(true);
    const episodes = await playOn(folder);
    expect(episodes.map(({ outcome, attempt }) => [outcome, attempt])).toEqual([
      ["completed", 2],
      ["completed", 2],
    ]);
  });

  test("the recording of another run is not continued, and that counts as no failure", async () => {
    {
      await using folder = await open();
      folder.writeEpisode = async () => await Promise.reject(new UsageError("gone"));
      await expect(playOn(folder)).rejects.toThrow("gone");
    }
    const file = path.join(dir, "recording.jsonl");
    await writeFile(file, (await readFile(file, "utf8")).replaceAll('"seed":1,', '"seed":9,'));
    await using folder = await open();
    const episodes = await playOn(folder);
    expect(episodes.map(({ attempt, seed }) => [attempt, seed])).toEqual([
      [1, 0],
      [2, 1],
    ]);
    expect(await eventsOf("recording-dropped")).toMatchObject([
      {
        rolloutId: "lamp/test/0#1",
        attempt: 1,
        message: "it is the recording of another run's attempt",
      },
    ]);
  });

  test("a recording that was copied from another run's folder is reported, and not used", async () => {
    const other = path.join(dir, "other");
    {
      await using _new = await open();
    }
    {
      await using folder = await open(false, other);
      folder.writeEpisode = async () => await Promise.reject(new UsageError("gone"));
      await expect(playOn(folder)).rejects.toThrow("gone");
    }
    const { runId: otherId } = await manifestIn(other);
    const begun = (await recordedLines(other)).filter(({ type }) => type === "begin");
    expect(begun.map(({ run }) => run)).toEqual([otherId, otherId]);
    await copyFile(path.join(other, "recording.jsonl"), path.join(dir, "recording.jsonl"));
    await using folder = await open();
    const { runId } = folder.manifest;
    expect(runId).not.toBe(otherId);
    expect((await playOn(folder)).map(({ attempt }) => attempt)).toEqual([2, 2]);
    const message =
      `it was recorded in another run, ${otherId}, and its recording was copied into this one, ` +
      runId;
    expect((await eventsOf("recording-dropped")).map((event) => event["message"])).toEqual([
      message,
      message,
    ]);
  });

  test("lines of another run hide nothing of this one", async () => {
    await using journal = await JsonlJournal.open(path.join(dir, "recording.jsonl"));
    const options = {
      journal,
      clock: { after: () => () => {} },
      onFailure: () => {},
    };
    const recording = new RecordingJournal(options);
    recording.begin({ ...start, run: "this" }).add({ ...late, times: [1] });
    recording.begin({ ...start, run: "other" }).add({ ...late, times: [2] });
    await recording.flush();
    const lines = (await readFile(path.join(dir, "recording.jsonl"), "utf8"))
      .split("\n")
      .slice(0, -1)
      .map((line) => Buffer.from(line));
    expect(joinLines(lines, "this")).toMatchObject({
      begin: { run: "this" },
      inputs: { times: [1] },
    });
    expect(joinLines(lines, "other")).toMatchObject({
      begin: { run: "other" },
      inputs: { times: [2] },
    });
    expect(joinLines(lines, "third")).toMatchObject({ begin: { run: "other" } });
    // Only the first start of a play begins it; a line with any other start continues it.
    const odd = Buffer.from(lines[0]!.toString().replace('"start":1', '"start":0'));
    expect(joinLines([lines[0]!, lines[1]!, odd], "this")).toMatchObject({
      partCount: 1,
      inputs: { times: [1] },
    });
    // A recording that names no run is taken as this one's.
    const nameless = lines.map((line) => Buffer.from(line.toString().replace(',"run":"this"', "")));
    expect(joinLines(nameless.slice(0, 2), "third")!.inputs.times).toEqual([1]);
  });

  test("with many running attempts, those that land soon after a write are written together, and later ones at once", async () => {
    const file = path.join(dir, "recording.jsonl");
    let nowMs = 1000;
    // A write takes 3 ms.
    const slow: Files = {
      ...diskFiles,
      open: async (name, mode) => {
        const opened = await diskFiles.open(name, mode);
        const sync = async (): Promise<void> => {
          nowMs += 3;
          await opened.sync();
        };
        return { ...opened, sync };
      },
    };
    await using journal = await JsonlJournal.open(file, { files: slow });
    const rests: { readonly ms: number; readonly callback: () => void }[] = [];
    const recording = new RecordingJournal({
      journal,
      clock: { after: () => () => {} },
      diskClock: {
        now: () => nowMs,
        sleep: async (ms) =>
          await new Promise<void>((callback) => void rests.push({ ms, callback })),
      },
      onFailure: () => {},
    });
    const written = async (): Promise<number> =>
      (await readFile(file, "utf8")).split("\n").length - 1;
    const attempt = recording.begin(start);
    await recording.land(8);
    expect(await written()).toBe(1);
    // The rest takes three times the write's time.
    nowMs += 4;
    attempt.add({ ...late, times: [1] });
    const first = recording.land(8);
    attempt.add({ ...late, times: [2] });
    const second = recording.land(8);
    expect(rests.map(({ ms }) => ms)).toEqual([5]);
    expect(await written()).toBe(1);
    rests[0]!.callback();
    await Promise.all([first, second]);
    expect(await written()).toBe(3);
    nowMs += 9;
    attempt.add({ ...late, times: [3] });
    await recording.land(8);
    expect(await written()).toBe(4);
    // With few attempts, none waits.
    attempt.add({ ...late, times: [4] });
    await recording.land(7);
    expect(await written()).toBe(5);
    expect(rests).toHaveLength(1);
    // None waits longer than this, even if the clock is set back.
    nowMs -= 100_000;
    attempt.add({ ...late, times: [5] });
    const third = recording.land(8);
    expect(rests[1]!.ms).toBe(50);
    rests[1]!.callback();
    await third;
    expect(await written()).toBe(6);
  });

  test("no secret that a server repeats is in it, in refusals or samples", async () => {
    const secret = "sk-very-secret-key";
    await using journal = await JsonlJournal.open(path.join(dir, "recording.jsonl"));
    const recording = new RecordingJournal({
      journal,
      clock: { after: () => () => {} },
      redactor: new Redactor([secret]),
      onFailure: () => {},
    });
    const attempt = recording.begin(start);
    const asked = { type: "generation", promptHash: "00", readings: 1 } as const;
    const message = `401: ${secret} is no key`;
    attempt.add({
      times: [],
      inputs: [
        { ...asked, outcome: { error: { code: "engine/bad-request", message } } },
        {
          ...asked,
          outcome: {
            value: {
              outputIds: [7],
              logprobs: [-0.5],
              finish: { type: "stop" },
              pieces: [
                { requestId: "r", tokenCount: 1, policyVersion: `of ${secret}`, finish: "stop" },
              ],
              discarded: [],
            },
          },
        },
      ],
    });
    await recording.flush();
    const text = await readFile(path.join(dir, "recording.jsonl"), "utf8");
    expect(text).not.toContain(secret);
    const lines = text.split("\n").slice(0, -1);
    const { inputs } = joinLines(lines.map((line) => Buffer.from(line)))!.inputs;
    expect(inputs).toMatchObject([
      { outcome: { error: { message: "401: [redacted] is no key" } } },
      {
        outcome: {
          value: {
            outputIds: [7],
            logprobs: [-0.5],
            pieces: [{ policyVersion: "of [redacted]" }],
          },
        },
      },
    ]);
  });

  test("a torn line belongs to no rollout, even if another line takes its place later", async () => {
    const file = path.join(dir, "recording.jsonl");
    const other = { ...start, rolloutId: "lamp/test/0#1", sampleIndex: 1 };
    const options = { clock: { after: () => () => {} }, onFailure: () => {} };
    {
      await using folder = await open();
      const recording = (await folder.recordings.open(options))!;
      recording.begin(other).add({ ...late, times: [1] });
      await recording.flush();
    }
    const whole = await readFile(file, "utf8");
    const [begin, inputs] = whole.split("\n");
    // A power cut tears the rollout's next line: the next line written there is as long.
    const torn = inputs!.replace('"part":0', '"part":1').slice(0, -1);
    await writeFile(file, whole + torn.padEnd(begin!.length).slice(0, begin!.length));
    await using folder = await open();
    const recording = (await folder.recordings.open(options))!;
    recording.begin(start).add({ ...late, times: [2] });
    await recording.flush();
    expect((await readFile(file, "utf8")).split("\n")[2]).toHaveLength(begin!.length);
    const { begin: own, inputs: kept } = (await folder.recordings.read("lamp/test/0#1"))!;
    expect([own.rolloutId, kept.times]).toEqual(["lamp/test/0#1", [1]]);
  });

  test("lines of another rollout are skipped", async () => {
    const file = path.join(dir, "recording.jsonl");
    await using journal = await JsonlJournal.open(file);
    const options = {
      journal,
      clock: { after: () => () => {} },
      onFailure: () => {},
    };
    const recording = new RecordingJournal(options);
    recording.begin(start).add({ ...late, times: [2] });
    recording.begin({ ...start, rolloutId: "other#0" }).add({ ...late, times: [1] });
    await recording.flush();
    const ranges: { start: number; end: number }[] = [];
    await scanLines(
      diskFiles,
      file,
      (line) => void ranges.push({ start: line.start, end: line.end }),
    );
    const { rolloutId } = start;
    const read = await readRecording(dir, {
      files: diskFiles,
      rolloutId,
      ranges,
      runId: undefined,
    });
    expect([read?.begin.rolloutId, read?.inputs.times]).toEqual([rolloutId, [2]]);
  });

  test("inputs after a damaged first line do not mix with those of the next play", async () => {
    await using journal = await JsonlJournal.open(path.join(dir, "recording.jsonl"));
    const options = {
      journal,
      clock: { after: () => () => {} },
      onFailure: () => {},
    };
    const recording = new RecordingJournal(options);
    recording.begin(start).add({ ...late, times: [1] });
    recording.begin(start).add({ ...late, times: [2] });
    await recording.flush();
    const [, ...lines] = (await readFile(path.join(dir, "recording.jsonl"), "utf8"))
      .split("\n")
      .slice(0, -1);
    expect(joinLines(lines.map((line) => Buffer.from(line)))!.inputs.times).toEqual([2]);
  });

  test("a flush also waits for the write in progress", async () => {
    const held = withResolvers();
    const written: number[] = [];
    const journal = {
      appendLines: async (lines: readonly unknown[]) => {
        await held.promise;
        written.push(lines.length);
      },
    } as unknown as JsonlJournal;
    const recording = new RecordingJournal({
      journal,
      clock: { after: () => () => {} },
      onFailure: () => {},
    });
    recording.begin(start);
    void recording.flush();
    const second = recording.flush().then(() => written.push(-1));
    held.resolve();
    await second;
    expect(written).toEqual([1, -1]);
  });
});

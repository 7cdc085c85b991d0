import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { withResolvers } from "../async/with-resolvers.ts";
import { type Files, diskFiles } from "./disk/files.ts";
import { openLamps, startLamps, switchingEngine, takeAll } from "./lamp-groups.fixture.ts";
import { testEpisode } from "./folder/run-folder.fixture.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-closed-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

const closed = (): string =>
  `Cannot continue writing ${dir}: it was closed while its run plays; end the run, such as by interrupt(), and wait ` +
  "for its result before its folder is closed";

async function contents(): Promise<Readonly<Record<string, string>>> {
  const names = (await readdir(dir)).toSorted();
  const texts = await Promise.all(
    names.map(async (name) => [name, await readFile(path.join(dir, name), "utf8")] as const),
  );
  return Object.fromEntries(texts);
}

describe("a folder that is closed while its run plays", () => {
  test("gets no more writes, and the next start resumes the run", async () => {
    const [reported, go] = [withResolvers(), withResolvers()];
    const engine = switchingEngine(async ({ sessionId }) => {
      if (sessionId !== "lamp/test/0#0") await go.promise;
    });
    const folder = await openLamps(dir);
    const onEpisode = (): void => reported.resolve();
    const run = startLamps({ folder, engine, admission: { concurrency: 2 }, onEpisode });
    // No line is left to write.
    await reported.promise;
    await folder[Symbol.asyncDispose]();
    const left = await contents();
    expect(Object.keys(left)).not.toContain("run.lock");
    await using next = await openLamps(dir);
    go.resolve();
    await expect(run.result).rejects.toThrow(closed());
    await expect(takeAll(run)).rejects.toThrow(closed());
    const { "run.lock": _lock, ...now } = await contents();
    expect(now).toEqual(left);
    const again = startLamps({ folder: next });
    await takeAll(again);
    expect(await again.result).toMatchObject({ end: "finished" });
  });

  test("refuses every write", async () => {
    const folder = await openLamps(dir, { format: "slime" });
    const failures: unknown[] = [];
    // A clock on which no line is written by itself.
    const clock = { after: () => () => {} };
    const onFailure = (error: unknown): void => void failures.push(error);
    const recording = await folder.recordings.open({ clock, onFailure });
    await folder.writeEpisode(testEpisode(0));
    const about = {
      groupId: "t",
      groupIndex: 0,
      sampleIndex: 1,
      seed: 0,
      split: "s",
      taskIndex: 0,
    };
    const written = recording!.begin({ rolloutId: "t#1", attempt: 1, start: 1, ...about, atMs: 1 });
    await folder[Symbol.asyncDispose]();
    const left = await contents();
    // Everything that was recorded before is in the file.
    expect(left["recording.jsonl"]).toContain('"rolloutId":"t#1"');
    written.end();
    await recording!.flush();
    expect(failures).toEqual([expect.objectContaining({ message: closed() })]);
    for (const write of [
      async () => void (await folder.writeEpisode(testEpisode(1))),
      async () => await folder.writeEvent({ type: "reported", atMs: 1 }),
      async () => await folder.results.writeSummary({}),
      async () => await folder.results.remove(),
      async () => await folder.sortSamples(["t#0"]),
      async () => void (await folder.writeSlime([])),
      async () => await folder.recordings.prune(() => "other"),
      async () => void (await folder.recordings.open({ clock, onFailure })),
    ]) {
      await expect(write()).rejects.toThrow(closed());
    }
    expect(await contents()).toEqual(left);
  });

  test("stays locked until writes in progress have ended", async () => {
    const [reached, go] = [withResolvers(), withResolvers()];
    const files: Files = {
      ...diskFiles,
      rename: async (from, to) => {
        if (to.endsWith("summary.json")) {
          reached.resolve();
          await go.promise;
        }
        await diskFiles.rename(from, to);
      },
    };
    const folder = await openLamps(dir, { files });
    const writing = folder.results.writeSummary({ end: "finished" });
    await reached.promise;
    const closing = folder[Symbol.asyncDispose]();
    // Lines that arrive in the meantime are synced before the folder is closed.
    const telling = folder.writeEvent({ type: "reported", atMs: 1 });
    expect(await readdir(dir)).toContain("run.lock");
    go.resolve();
    await Promise.all([writing, telling, closing]);
    const left = await contents();
    expect(Object.keys(left)).toEqual([
      "episodes.jsonl",
      "events.jsonl",
      "run.json",
      "samples.jsonl",
      "summary.json",
    ]);
    expect(left["events.jsonl"]).toBe('{"type":"reported","atMs":1}\n');
  });
});

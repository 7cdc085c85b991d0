import {
  appendFile,
  cp,
  lstat,
  mkdir,
  mkdtemp,
  readFile,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Episode } from "../../episode/episode.ts";
import { readRun } from "../../api/read-run.ts";
import { hashLine } from "../disk/encode-line.ts";
import { crashingFiles, faultyFiles } from "../faulty-files.fixture.ts";
import { diskFiles, type Files } from "../disk/files.ts";
import { fakeMachine } from "../machine.fixture.ts";
import { RunFolder, type RunFolderOptions, type RunManifest } from "./run-folder.ts";
import { failedEnd, rolloutIdsIn, testEpisode, testManifest } from "./run-folder.fixture.ts";

let scratch = "";
let dir = "";
beforeEach(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-run-"));
  dir = path.join(scratch, "run");
});
afterEach(async () => {
  await rm(scratch, { recursive: true });
});

async function open(options: Partial<RunFolderOptions> = {}): Promise<RunFolder> {
  const drawId = (): string => "drawn";
  return await RunFolder.open(dir, testManifest, { retryFailed: false, drawId, ...options });
}

async function write(episodes: readonly Episode[], options: Partial<RunFolderOptions> = {}) {
  await using folder = await open(options);
  for (const episode of episodes) {
    await folder.writeEpisode(episode);
  }
}

async function writeAndTell(folder: RunFolder, episodes: readonly Episode[]): Promise<void> {
  for (const episode of episodes) {
    const { rolloutId, outcome } = episode;
    const episodeHash = await folder.writeEpisode(episode);
    await folder.writeEvent({ type: "episode-finished", atMs: 1, rolloutId, outcome, episodeHash });
  }
}

function file(name: string): string {
  return path.join(dir, name);
}

function idsOf({ finished }: RunFolder): string[] {
  return finished.map(({ rolloutId }) => rolloutId);
}

async function edit(name: string, change: (text: string) => string): Promise<void> {
  await writeFile(file(name), change(await readFile(file(name), "utf8")));
}

describe("RunFolder", () => {
  test("knows finished episodes after reopening, by ids and counts alone", async () => {
    await write([testEpisode(0), testEpisode(1, failedEnd)]);
    await using again = await open();
    const { userUsage } = testEpisode(0);
    const counts = {
      turnCount: 2,
      sampledTokenCount: 20,
      tokenCount: 5,
      toolCallCount: 1,
      formatErrorCount: 0,
    };
    const named = { split: "test", hasOwnName: true };
    const place = { ...named, taskIndex: 0, counts, userUsage, reward: 1 };
    expect(again.finished).toEqual(
      [
        { rolloutId: "t#0", sampleIndex: 0, outcome: "completed", stopReason: "user-left" },
        { rolloutId: "t#1", sampleIndex: 1, ...failedEnd },
      ].map((row) => ({ ...place, ...row })),
    );
    expect(again.notes).toEqual([]);
  });

  test("names in each episode's row its rows of samples", async () => {
    await write([testEpisode(0, { segmentCount: 3 }), testEpisode(1, { segmentCount: 0 })]);
    const rows = (await readFile(file("episodes.jsonl"), "utf8")).trim().split("\n");
    expect(rows.map((row) => JSON.parse(row) as object)).toMatchObject([
      { rolloutId: "t#0", sampleHashes: { length: 3 } },
      { rolloutId: "t#1", sampleHashes: { length: 0 } },
    ]);
    await using again = await open();
    expect(idsOf(again)).toEqual(["t#0", "t#1"]);
  });

  test("drops failed episodes that are to be played again", async () => {
    await write([testEpisode(0), testEpisode(1, failedEnd)]);
    await using again = await open({ retryFailed: true });
    expect(idsOf(again)).toEqual(["t#0"]);
    expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(["t#0"]);
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(["t#0"]);
  });

  test("sorts the rows", async () => {
    {
      await using folder = await open({ format: "slime" });
      for (const index of [2, 0, 1]) {
        const episode = testEpisode(index, { segmentCount: index });
        await folder.writeEpisode(episode);
      }
      await folder.sortSamples(["t#0", "t#1", "t#2"]);
    }
    expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(["t#1", "t#2", "t#2"]);
    await using again = await open({ format: "slime" });
    expect(idsOf(again)).toEqual(["t#2", "t#0", "t#1"]);
  });

  test("writes the bytes of JSON.stringify()", async () => {
    const text = "🦊".repeat(200_000);
    const message = { role: "user", content: text } as const;
    await write([testEpisode(0, { messages: [message] })], { format: "slime" });
    for (const name of ["episodes.jsonl", "samples.jsonl"]) {
      const line = await readFile(file(name), "utf8");
      expect(line).toBe(`${JSON.stringify(JSON.parse(line))}\n`);
    }
    await using again = await open({ format: "slime" });
    expect(idsOf(again)).toEqual(["t#0"]);
  });
});

describe("RunFolder after a crash", () => {
  test("reads started attempts with samples of groups without a finished one, by their ids alone", async () => {
    await write([testEpisode(0)]);
    const begin = (groupId: string, sampleIndex: number, more: object = {}) => ({
      recording: 1,
      type: "begin",
      rolloutId: `${groupId}#${sampleIndex}`,
      attempt: 1,
      start: 1,
      groupId,
      groupIndex: groupId === "t" ? 0 : 1,
      sampleIndex,
      seed: 1,
      split: "test",
      taskIndex: 0,
      run: "drawn",
      atMs: 1,
      ...more,
    });
    const ownTask = { task: { id: "u", index: 0, split: "test", prompt: "x".repeat(10_000) } };
    const lines = [
      begin("t", 0),
      begin("t", 1),
      begin("u", 0, { ownTask }),
      begin("u", 1),
      begin("v", 0, { run: "another" }),
      begin("w", 0, { groupIndex: -1 }),
    ];
    const holding = (rolloutId: string, input: object) => {
      return { recording: 1, type: "inputs", rolloutId, attempt: 1, part: 0, inputs: [input] };
    };
    const sampled = lines.map(({ rolloutId }) => holding(rolloutId, { type: "generation" }));
    // The last ones have no sample.
    const brought = { type: "outside", outcome: { value: { type: "generation" } } };
    const text = [...lines, ...sampled, begin("x", 0), begin("y", 0), holding("y#0", brought)]
      .map((line) => `${JSON.stringify(line)}\n`)
      .join("");
    await writeFile(file("recording.jsonl"), text);
    const length = text.indexOf("\n") + 1;
    const readAt: number[] = [];
    const files: Files = {
      ...diskFiles,
      open: async (name, mode) => {
        const opened = await diskFiles.open(name, mode);
        const read: typeof opened.read = async (into, position) => {
          if (name === file("recording.jsonl")) readAt.push(position);
          return await opened.read(into, position);
        };
        return { ...opened, read };
      },
    };
    await using folder = await open({ files });
    readAt.splice(0);
    expect(await folder.recordings.readStarted()).toEqual([
      { rolloutId: "u#0", groupId: "u", groupIndex: 1, sampleIndex: 0 },
      { rolloutId: "u#1", groupId: "u", groupIndex: 1, sampleIndex: 1 },
    ]);
    // A start that the group's finished attempt describes is not read.
    expect(readAt.every((position) => position >= 2 * length)).toBe(true);
  });

  test("drops the samples of an episode without its line after a crash", async () => {
    await write([testEpisode(0), testEpisode(1)]);
    const [first] = (await readFile(file("episodes.jsonl"), "utf8")).split("\n");
    await writeFile(file("episodes.jsonl"), `${first}\n{"format":1,"rolloutId":"t#1","outc`);
    {
      await using again = await open();
      expect(idsOf(again)).toEqual(["t#0"]);
      expect(again.notes).toEqual([]);
      await again.writeEpisode(testEpisode(1));
    }
    expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(["t#0", "t#1"]);
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(["t#0", "t#1"]);
  });

  test("cuts off a torn row of samples", async () => {
    await write([testEpisode(0)]);
    await appendFile(file("samples.jsonl"), '{"format":1,"rolloutId":"t#1","tok');
    await using again = await open();
    await again.writeEpisode(testEpisode(1));
    expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(["t#0", "t#1"]);
  });

  test("keeps an episode if its line lacks only its line feed", async () => {
    await write([testEpisode(0), testEpisode(1)]);
    for (const name of ["episodes.jsonl", "samples.jsonl"]) {
      await truncate(file(name), (await stat(file(name))).size - 1);
    }
    {
      await using again = await open();
      expect(idsOf(again)).toEqual(["t#0", "t#1"]);
      await again.writeEpisode(testEpisode(2));
    }
    expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(["t#0", "t#1", "t#2"]);
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(["t#0", "t#1", "t#2"]);
  });

  test("removes temporary files of replacements", async () => {
    await write([testEpisode(0)]);
    for (const name of ["run.json", "samples.jsonl", "summary.json"]) {
      await writeFile(file(`${name}.next`), "half a f");
    }
    await using _again = await open();
    expect((await readdir(dir)).toSorted()).toEqual([
      "episodes.jsonl",
      "events.jsonl",
      "run.json",
      "run.lock",
      "samples.jsonl",
    ]);
  });

  const names = ["episodes.jsonl", "samples.jsonl"];
  test.each(names)("%s, cut at any byte, costs only the episodes that were cut", async (name) => {
    const episodes = [
      testEpisode(0),
      testEpisode(1, { segmentCount: 0 }),
      testEpisode(2, { segmentCount: 2 }),
      testEpisode(3, failedEnd),
    ];
    await write(episodes, { format: "slime" });
    const whole = path.join(scratch, "whole");
    await rename(dir, whole);
    const bytes = await readFile(path.join(whole, name));
    const lineEnds = [...bytes.keys()].filter((index) => bytes[index] === 0x0a);
    // Every byte about the ends of lines, and some in between.
    const places = [...bytes.keys()].filter(
      (index) => index % 97 === 0 || lineEnds.some((end) => Math.abs(end - index) <= 2),
    );
    for (const length of places) {
      await cp(whole, dir, { recursive: true });
      await truncate(file(name), length);
      const left = await rolloutIdsOfWhole(
        bytes,
        lineEnds.filter((end) => end <= length),
      );
      {
        await using again = await open({ format: "slime" });
        const finished = episodes
          .filter(({ rolloutId, segments }) => {
            const rowCount = { "episodes.jsonl": 1, "samples.jsonl": segments.length }[name];
            return left.filter((id) => id === rolloutId).length === rowCount;
          })
          .map(({ rolloutId }) => rolloutId);
        expect(idsOf(again), `${name} cut at ${length}`).toEqual(finished);
        for (const episode of episodes) {
          if (finished.includes(episode.rolloutId)) continue;
          await again.writeEpisode(episode);
        }
        await again.sortSamples(["t#0", "t#1", "t#2", "t#3"]);
      }
      for (const rows of ["samples.jsonl"]) {
        expect(await readFile(file(rows), "utf8")).toBe(
          await readFile(path.join(whole, rows), "utf8"),
        );
      }
      expect((await rolloutIdsIn(dir, "episodes.jsonl")).toSorted()).toEqual([
        "t#0",
        "t#1",
        "t#2",
        "t#3",
      ]);
      await rm(dir, { recursive: true });
    }
  });

  async function rolloutIdsOfWhole(bytes: Buffer, lineEnds: readonly number[]) {
    const copy = path.join(scratch, "lines.jsonl");
    await writeFile(copy, bytes.subarray(0, lineEnds.at(-1) ?? 0));
    return await rolloutIdsIn(scratch, "lines.jsonl");
  }
});

describe("RunFolder that dies while it is opened", () => {
  test("loses no finished episode after a death at any point", async () => {
    const episodes = [testEpisode(0), testEpisode(1, failedEnd), testEpisode(2), testEpisode(3)];
    await write(episodes, { format: "slime" });
    await edit("samples.jsonl", (text) => text.replace(/.*"t#2".*\n/, ""));
    await appendFile(file("episodes.jsonl"), '{"format":1,"roll');
    const whole = path.join(scratch, "whole");
    await rename(dir, whole);
    let hasOpened = false;
    for (let at = 0; !hasOpened; at++) {
      await cp(whole, dir, { recursive: true });
      const { files } = crashingFiles(at);
      const options = { format: "slime", retryFailed: true } as const;
      try {
        await using _dying = await open({ ...options, files, lock: { machine: fakeMachine({}) } });
        hasOpened = true;
      } catch {
        // The error does not matter: the process is dead.
      }
      {
        await using again = await open({ ...options, lock: { machine: fakeMachine({ pid: 2 }) } });
        expect(idsOf(again), `died at call ${at}`).toEqual(["t#0", "t#3"]);
      }
      for (const name of ["episodes.jsonl", "samples.jsonl"]) {
        expect(await rolloutIdsIn(dir, name)).toEqual(["t#0", "t#3"]);
      }
      await rm(dir, { recursive: true });
      expect(at).toBeLessThan(1000);
    }
  }, 900_000);

  test("can be read after a death at any point while it removes failed episodes", async () => {
    {
      await using folder = await open();
      await writeAndTell(folder, [testEpisode(0), testEpisode(1, failedEnd), testEpisode(2)]);
    }
    const whole = path.join(scratch, "whole");
    await rename(dir, whole);
    const read = new Set<string>();
    let hasOpened = false;
    for (let at = 0; !hasOpened; at++) {
      await cp(whole, dir, { recursive: true });
      const { files } = crashingFiles(at);
      const lock = { machine: fakeMachine({}) };
      try {
        await using _dying = await open({ retryFailed: true, files, lock });
        hasOpened = true;
      } catch {
        // The error does not matter: the process is dead.
      }
      const finished = await rolloutIdsIn(dir, "episodes.jsonl");
      const rows: string[] = [];
      for await (const { rolloutId } of (await readRun(dir)).samples()) rows.push(rolloutId);
      expect(rows, `died at call ${at}`).toEqual(finished);
      const found = [finished, await rolloutIdsIn(dir, "samples.jsonl")];
      read.add(found.map((ids) => ids.length).join());
      // A start that does not replay the failed one reports nothing.
      await using again = await open({ lock: { machine: fakeMachine({ pid: 2 }) } });
      expect([idsOf(again), again.notes]).toEqual([finished, []]);
      expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(finished);
      await rm(dir, { recursive: true });
      expect(at).toBeLessThan(1000);
    }
    expect([...read]).toEqual(["3,3", "2,3", "2,2"]);
  }, 900_000);
});

describe("RunFolder with damaged files", () => {
  const three = [testEpisode(0), testEpisode(1), testEpisode(2)];

  test("plays an episode again if its line is damaged in the middle of the file", async () => {
    await write(three);
    await edit("episodes.jsonl", (text) => text.replace('"rolloutId":"t#1"', '"rolloutId":"t#1'));
    {
      await using again = await open();
      expect(idsOf(again)).toEqual(["t#0", "t#2"]);
      expect(again.notes).toEqual([
        `${file("episodes.jsonl")} has damaged lines (1): their episodes are played again`,
      ]);
      expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(["t#0", "t#2"]);
      await again.writeEpisode(three[1]!);
    }
    await using third = await open();
    expect(idsOf(third)).toEqual(["t#0", "t#2", "t#1"]);
    expect(third.notes).toEqual([]);
  });

  test.each([
    ["is empty", () => "", []],
    [
      "lacks its last row",
      (text: string) => text.split("\n").slice(0, 2).join("\n"),
      ["t#0", "t#1"],
    ],
    ["lacks a row", (text: string) => text.replace(/.*"t#1".*\n/, ""), ["t#0", "t#2"]],
    [
      "has a damaged row",
      (text: string) => text.replace('"tokenIds":[1,2,101,', '"tokenIds":[1,2,\u0000\u0000\u0000,'),
      ["t#0", "t#2"],
    ],
    [
      "lacks an id",
      (text: string) => text.replace('"tokenIds":[1,2,101,', '"tokenIds":[1,2,'),
      ["t#0", "t#2"],
    ],
    [
      "has a changed id",
      (text: string) => text.replace('"tokenIds":[1,2,101,', '"tokenIds":[1,2,102,'),
      ["t#0", "t#2"],
    ],
    [
      "has a changed reward",
      (text: string) => text.replace(/("t#1".*"reward":)1/, "$10"),
      ["t#0", "t#2"],
    ],
    [
      "has a changed logprob",
      (text: string) => text.replace(/("t#1".*"logprobs":\[0,0,0,)-0\.5/, "$1-0.25"),
      ["t#0", "t#2"],
    ],
    ["has two rows glued", (text: string) => text.replace(/("t#1".{40}).*\n/, "$1"), ["t#0"]],
  ])("plays missing episodes again if samples.jsonl %s", async (_what, damage, left) => {
    await write(three);
    await edit("samples.jsonl", damage);
    {
      await using again = await open();
      expect(idsOf(again)).toEqual(left);
      expect(again.notes).toEqual([
        `${file("samples.jsonl")} lacks rows of finished episodes, or has damaged ones: these ` +
          `episodes are played again (${3 - left.length})`,
      ]);
      expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(left);
      expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(left);
    }
  });

  test.each([
    ["has another reward", (text: string) => text.replace(/("t#1".*"reward":)1/, "$10"), "damaged"],
    ["has another seed", (text: string) => text.replace(/("t#1".*"seed":)0/, "$17"), "damaged"],
    ["lacks a line", (text: string) => text.replace(/.*"t#1".*\n/, ""), "lost"],
  ])("plays an episode again if episodes.jsonl %s that has an event", async (_, damage, kind) => {
    {
      await using folder = await open();
      await writeAndTell(folder, three);
    }
    await edit("episodes.jsonl", damage);
    {
      await using again = await open({ lock: { now: () => 5 } });
      expect(idsOf(again)).toEqual(["t#0", "t#2"]);
      expect(again.notes).toEqual([
        kind === "damaged"
          ? `${file("episodes.jsonl")} has damaged lines (1): their episodes are played again`
          : `${file("episodes.jsonl")} lacks episodes that events.jsonl names: they are played again (1)`,
      ]);
      // An earlier event of the episode does not contradict the new line.
      await again.writeEpisode({ ...three[1]!, durationMs: 7 });
    }
    expect(await readFile(file("events.jsonl"), "utf8")).toContain(
      '{"type":"episodes-dropped","atMs":5,"rolloutIds":["t#1"],"lostIds":["t#1"]}\n',
    );
    await using third = await open();
    expect(idsOf(third)).toEqual(["t#0", "t#2", "t#1"]);
    expect(third.notes).toEqual([]);
  });

  test("writes the missing events of finished episodes after a crash", async () => {
    {
      await using folder = await open();
      await writeAndTell(folder, [testEpisode(0)]);
      await folder.writeEpisode(testEpisode(1));
      await folder.writeEpisode(testEpisode(2, failedEnd));
    }
    const before = await readFile(file("events.jsonl"), "utf8");
    {
      await using _again = await open({ lock: { now: () => 5 } });
    }
    const hashes = (await readFile(file("episodes.jsonl"), "utf8"))
      .trim()
      .split("\n")
      .map((line) => hashLine(Buffer.from(line)));
    const after = await readFile(file("events.jsonl"), "utf8");
    const events = after.slice(before.length).trim().split("\n");
    const found = { type: "episode-finished", atMs: 5, isFoundLater: true };
    const left = { outcome: "completed", stopReason: "user-left", reward: 1 };
    expect(after.startsWith(before)).toBe(true);
    expect(events.map((line) => JSON.parse(line) as object)).toEqual([
      { ...found, rolloutId: "t#1", ...left, episodeHash: hashes[1] },
      { ...found, rolloutId: "t#2", ...failedEnd, reward: 1, episodeHash: hashes[2] },
    ]);
    {
      await using third = await open();
      expect([idsOf(third), third.notes]).toEqual([["t#0", "t#1", "t#2"], []]);
    }
    expect(await readFile(file("events.jsonl"), "utf8")).toBe(after);
    await edit("episodes.jsonl", (text) => text.replace(/("t#1".*"seed":)0/, "$17"));
    await using last = await open();
    expect(idsOf(last)).toEqual(["t#0", "t#2"]);
  });

  test.each([
    [
      "a row",
      "samples.jsonl",
      (text: string) => text.replace(/("t#1".*"reward":)1/, "$10"),
      "samples.jsonl lacks rows of finished episodes, or has damaged ones: these episodes are taken out (1)",
      { episodes: ["t#1"], samples: ["t#1"] },
    ],
    [
      "an episode",
      "episodes.jsonl",
      (text: string) => text.replace(/("t#1".*"seed":)0/, "$17"),
      "episodes.jsonl has damaged lines (1): their episodes are taken out",
      { episodes: ["t#1"], samples: ["t#1"] },
    ],
    [
      "no line at all of one",
      "episodes.jsonl",
      (text: string) => text.replace(/.*"t#1".*\n/, ""),
      "episodes.jsonl lacks episodes that events.jsonl names (1)",
      { samples: ["t#1"] },
    ],
  ])(
    "sets aside episodes that are not played again if %s is complete",
    async (_, name, change, note, aside) => {
      {
        await using folder = await open();
        await writeAndTell(folder, three);
      }
      await edit(name, change);
      {
        await using again = await open({ setsAside: true });
        expect(idsOf(again)).toEqual(["t#0", "t#2"]);
        const places = Object.keys(aside).map((stem) => file(`${stem}.set-aside.jsonl`));
        expect(again.notes).toEqual([
          file(note),
          `what is left of these is set aside in ${places.join(", ")}`,
        ]);
      }
      for (const [stem, ids] of Object.entries(aside)) {
        expect(await rolloutIdsIn(dir, `${stem}.set-aside.jsonl`)).toEqual(ids);
      }
      await using third = await open({ setsAside: true });
      expect([idsOf(third), third.notes]).toEqual([["t#0", "t#2"], []]);
    },
  );

  test("appends to an existing set-aside file", async () => {
    await write(three);
    for (const id of ["t#1", "t#0"]) {
      await edit("samples.jsonl", (text) =>
        text.replace(new RegExp(`("${id}".*"reward":)1`), "$10"),
      );
      {
        await using again = await open({ setsAside: true });
        expect(again.notes).toHaveLength(2);
      }
      // As a crash would leave the next one.
      await appendFile(file("samples.set-aside.jsonl"), '{"torn');
    }
    await edit("samples.set-aside.jsonl", (text) => text.replace(/\{"torn$/, ""));
    expect(await rolloutIdsIn(dir, "samples.set-aside.jsonl")).toEqual(["t#1", "t#0"]);
  });

  test("sets aside the rows of a failed episode that lost its line", async () => {
    {
      await using folder = await open();
      await writeAndTell(folder, [testEpisode(0), testEpisode(1, failedEnd)]);
    }
    await edit("episodes.jsonl", (text) => text.replace(/.*"t#1".*\n/, ""));
    await using again = await open({ setsAside: true });
    expect(again.notes).toEqual([
      `${file("episodes.jsonl")} lacks episodes that events.jsonl names (1)`,
      `what is left of these is set aside in ${file("samples.set-aside.jsonl")}`,
    ]);
    expect(await rolloutIdsIn(dir, "samples.set-aside.jsonl")).toEqual(["t#1"]);
  });

  test("sets aside nothing that a crash left before its episode was finished", async () => {
    await write(three);
    await edit("episodes.jsonl", (text) => text.split("\n", 2).join("\n"));
    await using again = await open({ setsAside: true });
    expect([idsOf(again), again.notes]).toEqual([["t#0", "t#1"], []]);
    expect(await readdir(dir)).not.toContain("samples.set-aside.jsonl");
  });

  test("reports no failed episodes that are played again", async () => {
    {
      await using folder = await open();
      await writeAndTell(folder, [testEpisode(0), testEpisode(1, failedEnd)]);
    }
    {
      await using again = await open({ retryFailed: true });
      expect([idsOf(again), again.notes]).toEqual([["t#0"], []]);
      await again.writeEpisode(testEpisode(1));
    }
    await using third = await open();
    expect([idsOf(third), third.notes]).toEqual([["t#0", "t#1"], []]);
  });

  test("keeps complete rows, however they are written", async () => {
    await write([testEpisode(0, { segmentCount: 2 }), testEpisode(1)], { format: "slime" });
    const respell = (text: string): string =>
      text
        .trim()
        .split("\n")
        .toReversed()
        .map((line) => `${JSON.stringify(JSON.parse(line), null, 1).replaceAll("\n", "")}\n`)
        .join("");
    await edit("samples.jsonl", respell);
    await using again = await open({ format: "slime" });
    expect(idsOf(again)).toEqual(["t#0", "t#1"]);
  });

  test("keeps the line with samples if two claim the same episode", async () => {
    await write([testEpisode(0)]);
    const other = path.join(scratch, "other");
    await rename(dir, other);
    await write([testEpisode(0, { reward: 0.5 })]);
    // As two processes would leave them that wrote one folder.
    await appendFile(file("episodes.jsonl"), await readFile(path.join(other, "episodes.jsonl")));
    await writeFile(file("samples.jsonl"), await readFile(path.join(other, "samples.jsonl")));
    await using again = await open();
    expect(again.finished).toMatchObject([{ rolloutId: "t#0", reward: 1 }]);
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(["t#0"]);
  });

  test("keeps one of two complete records of one episode", async () => {
    await write([testEpisode(0), testEpisode(1)]);
    for (const name of ["episodes.jsonl", "samples.jsonl"]) await edit(name, (text) => text + text);
    await using again = await open();
    expect(idsOf(again)).toEqual(["t#0", "t#1"]);
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(["t#0", "t#1"]);
    expect(await rolloutIdsIn(dir, "samples.jsonl")).toEqual(["t#0", "t#1"]);
  });
});

describe("RunFolder and its manifest", () => {
  test("refuses a folder of another configuration, and names the difference", async () => {
    await write([testEpisode(0)]);
    const configuration = { env: "e", temperature: 0.5, split: "train" };
    const other = RunFolder.open(dir, { ...testManifest, configuration }, { retryFailed: false });
    await expect(other).rejects.toThrow(
      `Cannot resume ${dir}: temperature was 1 and is 0.5; split was undefined and is "train"; start ` +
        "with the same settings or choose another --out",
    );
    await using _again = await open();
  });

  test("compares the identity by members, and accepts operational changes", async () => {
    await write([testEpisode(0)]);
    const identity = { tokenizer: "t2", engine: "sglang", data: "d1" };
    const other = RunFolder.open(dir, { ...testManifest, identity }, { retryFailed: false });
    await expect(other).rejects.toThrow(
      `Cannot resume ${dir}: the identity of its episodes has changed: tokenizer was "t1" and is "t2"; ` +
        'data was undefined and is "d1"; restore what was there or choose another --out',
    );
    const found = { engine: "another address" };
    await using again = await RunFolder.open(
      dir,
      { ...testManifest, found },
      { retryFailed: false },
    );
    expect(idsOf(again)).toEqual(["t#0"]);
  });

  describe("with a plan", () => {
    const planned = (tasks: string, taskIndexes: readonly number[]) => ({
      ...testManifest,
      configuration: { ...testManifest.configuration, tasks },
      found: { plan: { taskIndexes }, settings: { tasks } },
    });
    const openWith = async (...plan: Parameters<typeof planned>) =>
      await RunFolder.open(dir, planned(...plan), { retryFailed: false });

    beforeEach(async () => {
      await using folder = await openWith("0-1", [0, 1]);
      await folder.writeEpisode(testEpisode(0));
      await folder.results.writeSummary({ end: "finished" });
    });

    test("plays tasks after those of the run, and is not finished before", async () => {
      await using again = await openWith("0-3", [0, 1, 2, 3]);
      expect(idsOf(again)).toEqual(["t#0"]);
      expect(again.manifest).toMatchObject(planned("0-3", [0, 1, 2, 3]));
      const stored = JSON.parse(await readFile(file("run.json"), "utf8")) as object;
      expect(stored).toMatchObject(planned("0-3", [0, 1, 2, 3]));
      expect(await readdir(dir)).not.toContain("summary.json");
    });

    test("takes another way to write the same tasks", async () => {
      await using again = await openWith("0,1", [0, 1]);
      expect(again.manifest).toMatchObject(planned("0,1", [0, 1]));
    });

    test.each([
      ["0", [0]],
      ["1,0", [1, 0]],
      ["1-4", [1, 2, 3, 4]],
    ])("refuses the tasks %s instead", async (tasks, taskIndexes) => {
      await expect(openWith(tasks, taskIndexes)).rejects.toThrow(
        `Cannot resume ${dir}: tasks was "0-1" and is "${tasks}"; start with the same settings (tasks may ` +
          "only be added after those of the run) or choose another --out",
      );
    });

    test("refuses more tasks of a run that draws them", async () => {
      const open = { ...planned("0-1", []), found: { plan: { isOpen: true } } };
      const draws = path.join(dir, "draws");
      {
        await using folder = await RunFolder.open(draws, open, { retryFailed: false });
        await folder.writeEpisode(testEpisode(0));
      }
      const more = { ...planned("0-2", []), found: open.found };
      await expect(RunFolder.open(draws, more, { retryFailed: false })).rejects.toThrow(
        "start with the same settings (only a run without epochs may get more tasks) or choose",
      );
    });

    test("refuses fewer tasks also if run.json is lost", async () => {
      {
        await using grown = await openWith("0-3", [0, 1, 2, 3]);
        const { manifest } = grown;
        await grown.writeEvent({ type: "run-started", atMs: 1, manifest });
      }
      await rm(file("run.json"));
      await expect(openWith("0-1", [0, 1])).rejects.toThrow('tasks was "0-3" and is "0-1"');
    });
  });

  test("lets another version name more or fewer things", async () => {
    await write([testEpisode(0)]);
    const newer = {
      ...testManifest,
      turnwright: "0.2.0",
      identity: { tokenizer: "t1", tools: "x" },
    };
    await using again = await RunFolder.open(dir, newer, { retryFailed: false });
    expect(idsOf(again)).toEqual(["t#0"]);
    expect(again.manifest.identity).toEqual({ tokenizer: "t1", engine: "sglang", tools: "x" });
  });

  describe("with an engine that reports its context length and its logprobs", () => {
    const asked = (
      identity: Readonly<Record<string, string>>,
      configuration: Readonly<Record<string, unknown>> = {},
    ): RunManifest => ({
      ...testManifest,
      configuration: { ...testManifest.configuration, ...configuration },
      identity: { ...testManifest.identity, ...identity },
    });
    const openAs = async (manifest: RunManifest): Promise<void> => {
      await using _folder = await RunFolder.open(dir, manifest, { retryFailed: false });
    };
    const begin = async (manifest: RunManifest): Promise<void> => {
      await using folder = await RunFolder.open(dir, manifest, { retryFailed: false });
      await folder.writeEpisode(testEpisode(0));
    };
    const changed = (): string =>
      `Cannot resume ${dir}: the identity of its episodes has changed: `;

    test("refuses another limit with both values, and accepts the former one as a setting", async () => {
      await begin(asked({ "max-context": "4096" }));
      await expect(openAs(asked({ "max-context": "720" }))).rejects.toThrow(
        `${changed()}max-context was "4096" and is "720"; ` +
          // An engine with a smaller context cannot hold the former one's conversations.
          "restore what was there or choose another --out",
      );
      await expect(openAs(asked({ "max-context": "8192" }))).rejects.toThrow(
        `${changed()}max-context was "4096" and is "8192"; ` +
          "restore what was there, give --max-context 4096 or choose another --out",
      );
      await expect(openAs(asked({ "max-context": "720" }, { "max-context": 720 }))).rejects.toThrow(
        `${changed()}max-context was "4096" and is "720"; ` +
          "restore what was there, give --max-context 4096 or choose another --out",
      );
      await openAs(asked({ "max-context": "4096" }, { "max-context": 4096 }));
      await openAs(asked({ "max-context": "4096" }));
    });

    test("takes an engine's limit for the same as a setting, and names settings that differ", async () => {
      await begin(asked({ "max-context": "4096" }, { "max-context": 4096 }));
      await openAs(asked({ "max-context": "4096" }));
      await expect(openAs(asked({ "max-context": "8192" }))).rejects.toThrow(
        "give --max-context 4096 or choose",
      );
      await expect(openAs(asked({ "max-context": "720" }, { "max-context": 720 }))).rejects.toThrow(
        "max-context was 4096 and is 720; start with the same settings",
      );
    });

    test("refuses logprobs of another kind", async () => {
      await begin(asked({ logprobConvention: "tempered" }));
      await expect(openAs(asked({ logprobConvention: "raw" }))).rejects.toThrow(
        `${changed()}logprobConvention was "tempered" and is "raw"; ` +
          "restore what was there or choose another --out",
      );
    });

    test("resumes without a reported limit, and compares with the first reported one", async () => {
      const settings = { "max-context": "4096", logprobConvention: "raw" };
      await begin(asked({}));
      await expect(openAs(asked(settings, { "max-context": 4096 }))).rejects.toThrow(
        "max-context was undefined and is 4096; start with the same settings",
      );
      await openAs(asked(settings));
      await openAs(asked({}));
      const stored = JSON.parse(await readFile(file("run.json"), "utf8")) as RunManifest;
      expect(stored.identity).toEqual({ ...testManifest.identity, ...settings });
      await expect(openAs(asked({ "max-context": "720" }))).rejects.toThrow(
        'max-context was "4096" and is "720"',
      );
    });
  });

  test("compares members with the names of Object's own", async () => {
    await write([testEpisode(0)]);
    const odd = { ...testManifest, identity: { ...testManifest.identity, toString: "t9" } };
    await writeFile(file("run.json"), JSON.stringify(odd));
    await expect(open()).rejects.toThrow('toString was "t9" and is undefined');
  });

  test("takes the identity of this start for a run that a program started without one", async () => {
    await write([testEpisode(0)]);
    const { identity: _identity, ...old } = testManifest;
    await writeFile(file("run.json"), JSON.stringify(old));
    {
      await using again = await open();
      expect(again.manifest).toEqual({ ...testManifest, runId: "drawn" });
    }
    const identity = { tokenizer: "t2", engine: "sglang" };
    const other = RunFolder.open(dir, { ...testManifest, identity }, { retryFailed: false });
    await expect(other).rejects.toThrow('tokenizer was "t1" and is "t2"');
  });

  describe("keeps the date of its prompts", () => {
    const { promptTime: _own, ...undated } = testManifest;
    const begunMs = new Date(2026, 10, 23, 10, 5).getTime();
    const dayMs = 24 * 60 * 60 * 1000;
    const openAt = async (atMs: number, asked: RunManifest = undated): Promise<RunFolder> =>
      await RunFolder.open(dir, asked, { retryFailed: false, lock: { now: () => atMs } });

    test("at any time of start, and with any date of a later start", async () => {
      for (const [day, asked] of [
        undated,
        undated,
        { ...undated, promptTime: "2027-01-01T00:00" },
      ].entries()) {
        await using folder = await openAt(begunMs + day * dayMs, asked);
        expect(folder.manifest.promptTime).toBe("2026-11-23T10:05:00.000");
      }
    });

    test.each(["2026-11-23T10:05:00.000Z", "2026-11-23", ""])(
      "and a moment that no later start could read is refused before anything is written: %j",
      async (promptTime) => {
        await expect(openAt(begunMs, { ...undated, promptTime })).rejects.toThrow(
          `Cannot open ${dir}: promptTime of its manifest is ${JSON.stringify(promptTime)}, expected a moment ` +
            "without a zone, such as 2026-11-23T10:05:00.000",
        );
        await expect(readFile(file("run.json"))).rejects.toThrow("ENOENT");
      },
    );

    test.each(["is lost", "is damaged"])("by its first start if run.json %s", async (what) => {
      {
        await using folder = await openAt(begunMs);
        const { manifest } = folder;
        for (const day of [0, 1]) {
          await folder.writeEvent({ type: "run-started", atMs: begunMs + day * dayMs, manifest });
        }
        await folder.writeEpisode(testEpisode(0));
        if (what === "is lost") await rm(file("run.json"));
        else await edit("run.json", (text) => text.replace("T10", "?"));
      }
      for (const day of [2, 3]) {
        await using folder = await openAt(begunMs + day * dayMs);
        expect(folder.manifest.promptTime).toBe("2026-11-23T10:05:00.000");
      }
    });
  });

  test.each([
    ["format", 2, "1"],
    ["turnwright", 7, "a text"],
    ["configuration", [], "an object"],
    ["identity", null, "an object"],
  ])("a manifest with %s %j is refused", async (name, value, expected) => {
    const asked = { ...testManifest, [name]: value } as RunManifest;
    await expect(RunFolder.open(dir, asked, { retryFailed: false })).rejects.toThrow(
      `Cannot open ${dir}: ${name} of its manifest is ${JSON.stringify(value)}, expected ${expected}`,
    );
  });

  const started = { type: "run-started", atMs: 0, manifest: { ...testManifest, runId: "begun" } };

  test.each([
    ["missing", undefined],
    ["damaged", ""],
    ["damaged", '{"format":1,"turnwri'],
    [
      "damaged",
      JSON.stringify({ format: 1, turnwright: "0.1.0", configuration: {}, identity: null }),
    ],
  ])("a %s run.json is written again from events.jsonl", async (state, text) => {
    {
      await using folder = await open();
      await folder.writeEvent(started);
      await folder.writeEpisode(testEpisode(0));
    }
    if (text === undefined) await rm(file("run.json"));
    else await writeFile(file("run.json"), text);
    const configuration = { env: "other", temperature: 1 };
    const other = RunFolder.open(dir, { ...testManifest, configuration }, { retryFailed: false });
    await expect(other).rejects.toThrow('env was "e" and is "other"');
    {
      await using again = await open();
      expect(idsOf(again)).toEqual(["t#0"]);
      expect(again.notes).toEqual([
        `${file("run.json")} was ${state} and is written again: events.jsonl says what was played`,
      ]);
    }
    expect(JSON.parse(await readFile(file("run.json"), "utf8"))).toEqual(started.manifest);
  });

  test("a folder that lost its run.json before the first episode is the same run's", async () => {
    const drawn = (runId: string) => ({ drawId: () => runId });
    {
      await using folder = await open(drawn("first"));
      await folder.writeEvent({ ...started, manifest: folder.manifest });
    }
    await rm(file("run.json"));
    {
      await using again = await open(drawn("second"));
      expect(again.manifest).toEqual({ ...testManifest, runId: "first" });
    }
    await rm(file("run.json"));
    // With other settings it is another one.
    const configuration = { ...testManifest.configuration, temperature: 0 };
    const options = { retryFailed: false, ...drawn("third") };
    await using other = await RunFolder.open(dir, { ...testManifest, configuration }, options);
    expect(other.manifest.runId).toBe("third");
  });

  const beginning = '{"type":"begin","rolloutId":"t#0","run":"drawn"}\n';

  describe.each(["samples.jsonl", "recording.jsonl", "gateway.jsonl", "samples.set-aside.jsonl"])(
    "a folder without an episode that has samples in %s",
    (name) => {
      const configuration = { ...testManifest.configuration, temperature: 0 };
      const colder = async (): Promise<RunFolder> =>
        await RunFolder.open(dir, { ...testManifest, configuration }, { retryFailed: false });

      test("belongs to its settings alone, also if run.json is lost", async () => {
        {
          await using folder = await open();
          await folder.writeEvent({ ...started, manifest: folder.manifest });
        }
        await writeFile(
          file(name),
          `${beginning}{"type":"inputs","inputs":[{"type":"generation"}]}\n`,
        );
        const before = await readFile(file("run.json"), "utf8");
        await expect(colder()).rejects.toThrow("temperature was 1 and is 0");
        expect(await readFile(file("run.json"), "utf8")).toBe(before);
        await rm(file("run.json"));
        await expect(colder()).rejects.toThrow("temperature was 1 and is 0");
        await using again = await open({ drawId: () => "second" });
        expect(again.manifest).toEqual(JSON.parse(before));
      });
    },
  );

  test("so does one with samples only in a damaged line", async () => {
    {
      await using _folder = await open();
    }
    await writeFile(
      file("recording.jsonl"),
      `${beginning}{"type":"inputs","inputs":[{"type":"generation"`,
    );
    const configuration = { ...testManifest.configuration, temperature: 0 };
    const colder = RunFolder.open(dir, { ...testManifest, configuration }, { retryFailed: false });
    await expect(colder).rejects.toThrow("temperature was 1 and is 0");
  });

  test.each([
    ["nothing else", undefined],
    ["what was called outside", { a: 1 }],
    ["megabytes that were called outside", "x".repeat(2_000_000)],
    ["a generation that is not the policy's", { type: "generation", inputs: ["generation"] }],
  ])("a recording with %s goes with the settings of its run", async (_, value) => {
    const input = { type: "outside", index: 0, what: "load", outcome: { value } };
    const brought = JSON.stringify({ type: "inputs", rolloutId: "t#0", inputs: [input] });
    const begin = beginning + (value === undefined ? "" : `${brought}\n`);
    for (const temperature of [0, 0.5]) {
      {
        await using _folder = await open();
      }
      await writeFile(file("recording.jsonl"), begin);
      if (temperature > 0) await rm(file("run.json"));
      const configuration = { ...testManifest.configuration, temperature };
      const options = { retryFailed: false, drawId: () => "other" };
      {
        await using other = await RunFolder.open(dir, { ...testManifest, configuration }, options);
        expect(other.manifest.runId).toBe("other");
      }
      expect(await readdir(dir)).not.toContain("recording.jsonl");
      await rm(dir, { recursive: true });
    }
  });

  test("reports what to do if no file says what was played", async () => {
    await write([testEpisode(0)]);
    await writeFile(file("run.json"), "");
    await expect(open()).rejects.toThrow(
      `Cannot resume ${dir}: its run.json is damaged, and events.jsonl does not say what was played; ` +
        "put a copy of it back, or start the same command with another --out",
    );
    await rm(file("run.json"));
    await expect(open()).rejects.toThrow("its run.json is missing");
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(["t#0"]);
  });

  test("a folder with a run.json that was torn before the first episode is a new one", async () => {
    await mkdir(dir);
    await writeFile(file("run.json"), '{"form');
    {
      await using _folder = await open();
    }
    const manifest = JSON.parse(await readFile(file("run.json"), "utf8")) as RunManifest;
    expect(manifest).toEqual({ ...testManifest, runId: "drawn" });
  });

  test("refuses a run of another format", async () => {
    await mkdir(dir);
    await writeFile(file("run.json"), '{"format":2}');
    await expect(open()).rejects.toThrow(
      `Cannot read ${file("run.json")}: it is a run of another version (format 2)`,
    );
  });
});

describe("RunFolder and other processes", () => {
  test("refuses a second writer before it changes anything", async () => {
    await using folder = await open();
    await folder.writeEpisode(testEpisode(0));
    await appendFile(file("samples.jsonl"), "");
    const before = await stat(file("samples.jsonl"));
    await expect(open()).rejects.toThrow(`Cannot use ${dir}: process ${process.pid} on`);
    expect((await stat(file("samples.jsonl"))).ino).toBe(before.ino);
    await folder.writeEpisode(testEpisode(1));
  });

  test("lets the next writer in once it is closed, also if opening failed", async () => {
    await write([testEpisode(0)]);
    const configuration = {};
    const other = RunFolder.open(dir, { ...testManifest, configuration }, { retryFailed: false });
    await expect(other).rejects.toThrow("Cannot resume");
    await using _again = await open();
  });

  test("is one folder under all its names", async () => {
    await mkdir(path.join(scratch, "real"));
    await symlink(path.join(scratch, "real"), dir);
    await using folder = await open();
    const real = RunFolder.open(path.join(scratch, "real"), testManifest, { retryFailed: false });
    await expect(real).rejects.toThrow(`process ${process.pid} on`);
    await folder.writeEpisode(testEpisode(0));
  });

  test("keeps links to files on another disk", async () => {
    await mkdir(dir);
    await symlink(path.join(scratch, "big.jsonl"), file("samples.jsonl"));
    {
      await using folder = await open();
      for (const index of [1, 0]) {
        await folder.writeEpisode(testEpisode(index));
      }
      await folder.sortSamples(["t#0", "t#1"]);
    }
    expect((await lstat(file("samples.jsonl"))).isSymbolicLink()).toBe(true);
    expect(await rolloutIdsIn(scratch, "big.jsonl")).toEqual(["t#0", "t#1"]);
  });

  test("stops a process that stood still while another host took the run over", async () => {
    let nowMs = 0;
    const elsewhere = { machine: fakeMachine({ host: "two", bootId: "boot-2" }), now: () => nowMs };
    const sleeper = await open({ lock: { ...elsewhere, heartbeatMs: 1e9 } });
    await sleeper.writeEpisode(testEpisode(0));
    const sessions = await sleeper.openJournal("gateway.jsonl");
    const long = new Date(Date.now() - 120_000);
    await utimes(file("run.lock"), long, long);
    await using other = await open();
    await other.writeEpisode(testEpisode(1));
    nowMs += 60_000;
    await expect(sleeper.writeEpisode(testEpisode(1))).rejects.toThrow(
      "another process took the run over while this one stood still",
    );
    await expect(sleeper.results.writeSummary({})).rejects.toThrow("took the run over");
    await expect(sessions.append({ type: "opened" })).rejects.toThrow("took the run over");
    expect(await readFile(sessions.path, "utf8")).toBe("");
    await sleeper[Symbol.asyncDispose]();
    expect(await rolloutIdsIn(dir, "episodes.jsonl")).toEqual(["t#0", "t#1"]);
  });
});

describe("RunFolder on a disk with faults", () => {
  test("says in one line that the folder cannot be created", async () => {
    await writeFile(path.join(scratch, "a-file"), "");
    const under = path.join(scratch, "a-file", "run");
    await expect(RunFolder.open(under, testManifest, { retryFailed: false })).rejects.toThrow(
      `Cannot create the run folder ${under}: ENOTDIR`,
    );
  });

  test("says at once that the folder was deleted", async () => {
    const folder = await open();
    await folder.writeEpisode(testEpisode(0));
    await rename(dir, `${dir}-moved`);
    const reason = `Cannot continue writing ${dir}: the folder was moved or deleted`;
    await expect(folder.writeEpisode(testEpisode(1))).rejects.toThrow(reason);
    await folder[Symbol.asyncDispose]();
    await rename(`${dir}-moved`, dir);
    await rm(file("run.lock"));
    await using again = await open();
    expect(idsOf(again)).toEqual(["t#0"]);
  });

  const names = ["samples.jsonl", "episodes.jsonl"];
  test.each(names)("a full disk at %s loses no finished episode", async (name) => {
    let isFull = false;
    const files = faultyFiles(({ operation, path }) =>
      isFull && operation === "write" && path.endsWith(name)
        ? { type: "fail", code: "ENOSPC", written: 9 }
        : undefined,
    );
    {
      await using folder = await open({ files, format: "slime" });
      await folder.writeEpisode(testEpisode(0));
      isFull = true;
      const reason = `Cannot write ${file(name)}: ENOSPC: no space left on device, write; make room`;
      for (const index of [1, 2]) {
        await expect(folder.writeEpisode(testEpisode(index))).rejects.toThrow(reason);
      }
    }
    await using again = await open({ format: "slime" });
    expect(idsOf(again)).toEqual(["t#0"]);
    expect(again.notes).toEqual([]);
    for (const rows of names) expect(await rolloutIdsIn(dir, rows)).toEqual(["t#0"]);
  });

  test("a read-only folder is refused in one line", async () => {
    const files = faultyFiles(({ operation }) =>
      operation === "open" ? { type: "fail", code: "EACCES" } : undefined,
    );
    await expect(open({ files })).rejects.toThrow(
      `Cannot write ${file("run.lock")}: EACCES: permission denied, open; make it writable, or choose`,
    );
  });
});

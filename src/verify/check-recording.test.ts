import fc from "fast-check";
import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { diskFiles } from "../run/disk/files.ts";
import { lamps, playLamps } from "../run/lamp-run.fixture.ts";
import { fakeMachine } from "../run/machine.fixture.ts";
import { writeInputsLine } from "../run/recording/recording-line.ts";
import { RunFolder } from "../run/folder/run-folder.ts";
import { testManifest } from "../run/folder/run-folder.fixture.ts";
import { checkRecording } from "./check-recording.ts";
import type { EpisodeFacts } from "./episode-file.ts";
import { verifyRun } from "./verify-run.ts";

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-audit-recording-"));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

const place = { rolloutId: "lamp/test/0#1", attempt: 1 };
const about = {
  groupId: "lamp/test/0",
  groupIndex: 0,
  sampleIndex: 1,
  seed: 7,
  split: "test",
  taskIndex: 0,
};
const begin = (start = 1, more: object = {}): string =>
  JSON.stringify({ recording: 1, type: "begin", ...place, start, ...about, ...more, atMs: 0 });
const end = (partCount?: number): string =>
  JSON.stringify({ recording: 1, type: "end", ...place, partCount });

const missing = "the line is damaged, or one before it is missing: its content is ignored";
const of = `of ${place.rolloutId}`;

/** A number of input lines, each based on the one before. */
function inputs(count: number): readonly string[] {
  let hash = "";
  return Array.from({ length: count }, (_, part) => {
    const line = writeInputsLine({ ...place, part, hash }, { inputs: [], times: [part] });
    hash = line.hash;
    return line.text;
  });
}

const episode = { fields: { ...about, attempt: 1 } } as unknown as EpisodeFacts;
const episodes = new Map([[place.rolloutId, episode]]);

/**
 * The findings in a recording of these lines, and the number of the run's episodes that are
 * recorded (0 or 1).
 */
async function check(lines: readonly string[], of = episodes) {
  await writeFile(path.join(dir, "recording.jsonl"), lines.map((line) => `${line}\n`).join(""));
  const { recorded, findings } = (await checkRecording({ files: diskFiles, dir }, of, "this"))!;
  return [recorded, ...findings.map(({ line, rule, detail }) => `${line} ${rule}: ${detail}`)];
}

test("a complete recording counts, with or without its length in the end", async () => {
  expect(await check([begin(), ...inputs(3), end(3)])).toEqual([1]);
  // The end need not say how many parts there were.
  expect(await check([begin(), ...inputs(3), end()])).toEqual([1]);
});

test("an episode without the end that a killed start did not write counts too", async () => {
  expect(await check([begin(), ...inputs(2)])).toEqual([1]);
  // The start that resumes the attempt writes another end.
  expect(await check([begin(), ...inputs(1), end(1), begin(2), ...inputs(2).slice(1)])).toEqual([
    1,
  ]);
});

test("lines of another attempt or run, or of an attempt that ended unrecorded, are neither findings nor recordings", async () => {
  const [first, second] = inputs(2);
  expect(await check([begin(), first!, second!, end(2)], new Map())).toEqual([0]);
  const later = { fields: { ...about, seed: 9, attempt: 2 } } as unknown as EpisodeFacts;
  expect(await check([begin(), end(0)], new Map([[place.rolloutId, later]]))).toEqual([0]);
  // Lines of that run that do not fit are no lines of this one.
  expect(await check([begin(1, { run: "another" }), second!, end(1)])).toEqual([0]);
  const unrecorded = JSON.stringify({ recording: 1, type: "end", ...place, isUnrecorded: true });
  expect(await check([begin(), first!, unrecorded])).toEqual([0]);
});

test("lines copied from another run hide none of this run's", async () => {
  const [first, , third] = inputs(3);
  const copied = [begin(1, { run: "another" }), first!, end(1)];
  expect(await check([begin(), first!, third!, end(3), ...copied])).toEqual([
    0,
    `3 recording: ${of} ${missing}`,
  ]);
});

test("the latest attempt at a rollout is looked at", async () => {
  const again = (line: string): string => line.replace('"attempt":1', '"attempt":2');
  const [first, second] = inputs(2);
  const later = { fields: { ...about, attempt: 2 } } as unknown as EpisodeFacts;
  const lines = [begin(), second!, ...[begin(), first!, end(1)].map(again)];
  expect(await check(lines, new Map([[place.rolloutId, later]]))).toEqual([1]);
  expect(await check(lines)).toEqual([0]);
});

test("a line with a correct hash and without inputs is damaged", async () => {
  const written = (held: string): string => {
    const body = `"times":[],"inputs":${held}`;
    const hash = createHash("sha256").update(body).digest("hex").slice(0, 16);
    const head = { recording: 1, type: "inputs", ...place, part: 0, hash };
    return `${JSON.stringify(head).slice(0, -1)},${body}}`;
  };
  expect(await check([begin(), written("[]"), end(1)])).toEqual([1]);
  const bad = '{"type":"generation","outcome":{"value":{"ids":"gA==","logprobs":""}}}';
  for (const held of ["[null]", "{}", "null", `[${bad}]`]) {
    expect(await check([begin(), written(held), end(1)])).toEqual([
      0,
      `2 recording: ${of} ${missing}`,
    ]);
  }
});

test("a missing line is found at any place", async () => {
  const parts = inputs(3);
  const whole = [begin(), ...parts, end(3)];
  const without = async (index: number) => await check(whole.toSpliced(index, 1));
  expect(await without(0)).toEqual([
    0,
    `4 recording: ${of} the line is missing with which the attempt was begun`,
  ]);
  expect(await without(1)).toEqual([0, `2 recording: ${of} ${missing}`]);
  expect(await without(2)).toEqual([0, `3 recording: ${of} ${missing}`]);
  expect(await without(3)).toEqual([
    0,
    `4 recording: ${of} 2 lines of inputs are there, and there were 3`,
  ]);
});

test("a damaged line is no finding if a later start ignored it, and is one if that start built on it", async () => {
  const [first, second, third] = inputs(3);
  const torn = second!.slice(0, -5);
  expect(await check([begin(), first!, torn, begin(2), second!, third!, end(3)])).toEqual([1]);
  expect(await check([begin(), first!, torn, begin(2), third!, end(3)])).toEqual([
    0,
    `5 recording: ${of} ${missing}`,
  ]);
});

test("an attempt's recorded start is compared with its episode", async () => {
  const changed = {
    groupId: "lamp/test/1",
    groupIndex: 1,
    sampleIndex: 0,
    seed: 8,
    split: "train",
    taskIndex: 1,
  };
  const found = [
    `1 recording: ${of} split is "train", and "test" among the episodes`,
    `1 recording: ${of} taskIndex is 1, and 0 among the episodes`,
    `1 recording: ${of} groupId is "lamp/test/1", and "lamp/test/0" among the episodes`,
    `1 recording: ${of} groupIndex is 1, and 0 among the episodes`,
    `1 recording: ${of} sampleIndex is 0, and 1 among the episodes`,
    `1 recording: ${of} seed is 8, and 7 among the episodes`,
  ];
  expect(await check([begin(1, changed), ...inputs(1), end(1)])).toEqual([0, ...found]);
  // Also where a later start went on with it.
  expect(await check([begin(1, changed), ...inputs(1), begin(2), end(1)])).toEqual([0, ...found]);
});

test("a line of another kind is found", async () => {
  expect(await check([begin(), ...inputs(1), "{}", end(1)])).toEqual([
    1,
    "3 recording: the line does not belong to a recording (a torn line?)",
  ]);
});

test("a run's episodes are recorded, and a change to any sampled byte is noticed", async () => {
  const played = path.join(dir, "played");
  {
    const lock = { machine: fakeMachine({ pid: 2 }) };
    await using folder = await RunFolder.open(played, testManifest, { retryFailed: false, lock });
    await playLamps(folder, { ...lamps(2), repeatable: true });
  }
  const file = path.join(played, "recording.jsonl");
  const found = async () => {
    const { recorded, violations } = await verifyRun(played);
    return { recorded, isFound: violations.some((each) => each.file === "recording.jsonl") };
  };
  expect(await found()).toEqual({ recorded: 4, isFound: false });
  const sound = await readFile(file);
  // The positions of input lines; the names in other lines have no other meaning.
  const places: number[] = [];
  let from = 0;
  for (const line of sound.toString("latin1").split("\n")) {
    if (line.includes('"type":"inputs"'))
      for (let at = 0; at < line.length; at++) places.push(from + at);
    from += line.length + 1;
  }
  expect(places.length).toBeGreaterThan(1000);
  await fc.assert(
    fc.asyncProperty(
      fc.constantFrom(...places),
      fc.integer({ min: 1, max: 255 }),
      async (at, by) => {
        const damaged = Buffer.from(sound);
        damaged[at]! ^= by;
        await writeFile(file, damaged);
        expect(await found()).toMatchObject({ isFound: true });
      },
    ),
    { numRuns: 200 },
  );
});

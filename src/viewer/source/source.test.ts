import { appendFile, mkdtemp, rename, rm, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Files, diskFiles } from "../../run/disk/files.ts";
import { loadTokenCodec } from "../../tokenizer/load-codec.ts";
import { readEpisodeHead, readEpisodeLine } from "./episode-head.ts";
import { LineFollower } from "./line-follower.ts";
import { readBranchRow, readRow } from "./read-row.ts";
import { scanRow } from "./scan-row.ts";
import { spellIds } from "./spell-ids.ts";
import { versionsOfLine } from "./versions-of-line.ts";

let dir = "";
beforeAll(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-viewer-"));
});
afterAll(async () => {
  await rm(dir, { recursive: true });
});

describe("LineFollower", () => {
  async function follow(name: string) {
    const file = path.join(dir, name);
    const seen: string[] = [];
    const follower = new LineFollower(file, {
      files: diskFiles,
      headLength: 4,
      onLine: ({ head, start, end }) => seen.push(`${head.toString()} ${start}-${end}`),
      onReset: () => seen.push("reset"),
    });
    const read = async () => {
      await follower.read();
      return seen.splice(0);
    };
    return { file, follower, read };
  }

  test("reports complete lines as they grow", async () => {
    const { file, follower, read } = await follow("grow");
    expect(await read()).toEqual([]);
    await writeFile(file, "first\n\nsec");
    expect(await read()).toEqual(["firs 0-5"]);
    await appendFile(file, "ond\nthird\n");
    expect(await read()).toEqual(["seco 7-13", "thir 14-19"]);
    expect(await read()).toEqual([]);
    expect((await follower.lineAt({ start: 7, end: 13 })).toString()).toBe("second");
  });

  test("reads a replaced or truncated file again from its start", async () => {
    const { file, read } = await follow("replaced");
    await writeFile(file, "one\ntwo\n");
    await read();
    await writeFile(`${file}.next`, "two\none\n");
    await rename(`${file}.next`, file);
    expect(await read()).toEqual(["reset", "two 0-3", "one 4-7"]);
    await truncate(file, 4);
    expect(await read()).toEqual(["reset", "two 0-3"]);
  });

  test("reads a file again that was truncated and has grown beyond its earlier size", async () => {
    const { file, read } = await follow("regrown");
    await writeFile(file, "one\ntwo\n");
    await read();
    await truncate(file, 4);
    await appendFile(file, "three\nfour\n");
    expect(await read()).toEqual(["reset", "one 0-3", "thre 4-9", "four 10-14"]);
    await truncate(file, 4);
    await appendFile(file, "drei\nviers\n");
    expect(await read()).toEqual(["reset", "one 0-3", "drei 4-8", "vier 9-14"]);
  });

  test("continues if only a torn line was removed and rewritten", async () => {
    const { file, read } = await follow("torn");
    await writeFile(file, "one\ntw");
    expect(await read()).toEqual(["one 0-3"]);
    await truncate(file, 4);
    await appendFile(file, "three\n");
    expect(await read()).toEqual(["thre 4-9"]);
  });

  test("opens no file that did not change since the read before the last", async () => {
    const file = path.join(dir, "still");
    await writeFile(file, "one\ntw");
    let openCount = 0;
    const open: Files["open"] = async (...call) => {
      openCount++;
      return await diskFiles.open(...call);
    };
    const follower = new LineFollower(file, {
      files: { ...diskFiles, open },
      headLength: 4,
      onLine: () => {},
      onReset: () => {},
    });
    for (let count = 0; count < 5; count++) await follower.read();
    expect(openCount).toBe(2);
  });

  test("keeps the beginning of a line that is longer than a block", async () => {
    const { file, read } = await follow("long");
    await writeFile(file, `${"x".repeat(3_000_000)}\nend\n`);
    expect(await read()).toEqual(["xxxx 0-3000000", "end 3000001-3000004"]);
  });
});

describe("readEpisodeHead()", () => {
  const row = {
    format: 1,
    rolloutId: 'a"\\/0#1',
    groupId: "a/0",
    taskId: "a/0",
    taskIndex: 0,
    environment: "a",
    split: "test",
    sampleIndex: 1,
    seed: 3,
    attempt: 1,
    outcome: "truncated",
    stopReason: "max-turns",
    reward: 0.5,
    rewardComponents: { style: { value: 0.5, weight: 1 }, broken: { value: "1" } },
    rewardDetails: { said: '"messages":[', nested: { messages: ["}{"] } },
    counts: {
      turnCount: 2,
      sampledTokenCount: 7,
      tokenCount: 9,
      toolCallCount: 1,
      formatErrorCount: 1,
    },
    userUsage: { callCount: 0, inputTokenCount: 0, outputTokenCount: 0 },
    startedAtMs: 5,
    durationMs: 6,
    messages: [
      { role: "system", content: 'Be "brief" {' },
      { role: "user", content: "Hello, \n  I am Ann." },
      { role: "assistant", content: "x".repeat(1_000) },
    ],
    sampleHashes: [],
  };
  const expected = {
    order: 4,
    rolloutId: 'a"\\/0#1',
    groupId: "a/0",
    taskId: "a/0",
    taskIndex: 0,
    environment: "a",
    split: "test",
    sampleIndex: 1,
    about: "Hello, I am Ann.",
    outcome: "truncated",
    stopReason: "max-turns",
    reason: 'said: "messages":[',
    reward: 0.5,
    components: { style: 0.5 },
    rowCount: 0,
    turnCount: 2,
    tokenCount: 9,
    sampledTokenCount: 7,
    toolCallCount: 1,
    formatErrorCount: 1,
    startedAtMs: 5,
    durationMs: 6,
  };

  test("needs the line up to the messages only", () => {
    const line = Buffer.from(JSON.stringify(row));
    expect(readEpisodeHead(line.subarray(0, 800), 4)).toEqual(expected);
    expect(readEpisodeHead(line.subarray(0, 200), 4)).toBeUndefined();
    const { about: _about, ...rest } = expected;
    const end = line.indexOf("Hello");
    expect(readEpisodeHead(line.subarray(0, end), 4)).toEqual(rest);
  });

  test("parses the complete line for another order of fields", () => {
    const { messages, ...rest } = row;
    const line = Buffer.from(JSON.stringify({ messages, ...rest }));
    expect(readEpisodeHead(line, 4)).toBeUndefined();
    expect(readEpisodeLine(line, 4)).toEqual(expected);
    expect(readEpisodeLine(Buffer.from('{"format":1'), 4)).toBeUndefined();
  });

  test.each([
    { counts: {} },
    { counts: { ...row.counts, turnCount: "2" } },
    { reward: "high" },
    { taskIndex: null },
    { groupId: 3 },
  ])("takes a line with %j as damaged", (wrong) => {
    const line = Buffer.from(JSON.stringify({ ...row, ...wrong }));
    expect(readEpisodeHead(line, 4)).toBeUndefined();
    expect(readEpisodeLine(line, 4)).toBeUndefined();
  });
});

test("versionsOfLine() names each version once, without parsing", () => {
  const versions = ["", "", "7", "7", 'odd"\\', "", "8"];
  const line = Buffer.from(JSON.stringify({ tokenIds: [1], policyVersions: versions, turns: [] }));
  expect(versionsOfLine(line)).toEqual(["7", 'odd"\\', "8"]);
  expect(versionsOfLine(Buffer.from("{}"))).toEqual([]);
});

describe("spellIds()", () => {
  test("puts the ids' texts together to the text that was encoded", async () => {
    const folder = fileURLToPath(new URL("../../../models/storefront-2m", import.meta.url));
    const codec = await loadTokenCodec(folder);
    const text = "<|im_start|>user\nCancel order 9029, 注文 🙂!<|im_end|>\n";
    const ids = await codec.encode(text);
    const pieces = new Map(spellIds(codec, ids).map(([id, ...piece]) => [id, piece]));
    const bytes = ids.map((id) => {
      const [spelled, form] = pieces.get(id)!;
      return form === "bytes" ? Buffer.from(spelled, "hex") : Buffer.from(spelled);
    });
    expect(Buffer.concat(bytes).toString()).toBe(text);
    expect([...pieces.values()].some(([, form]) => form === "bytes")).toBe(true);
    expect(pieces.get(ids[0]!)).toEqual(["<|im_start|>", "special"]);
    await codec.close?.();
  });

  test("reads SentencePiece's blanks and bytes, and has no piece of foreign ids", () => {
    const spellings = ["▁the", "<0x0A>", "<0xF0>"];
    const pieces = spellIds(
      {
        addedTokens: [{ id: 9, content: "</s>", special: true }],
        idOf: () => undefined,
        tokenOf: (id) => spellings[id],
      },
      [9, 2, 1, 0, 0, 3],
    );
    expect(pieces).toEqual([
      [0, " the", "text"],
      [1, "\n", "text"],
      [2, "f0", "bytes"],
      [9, "</s>", "special"],
    ]);
  });
});

test("readBranchRow() reads the tree's part of a row, in any layout", () => {
  const row = {
    tokenIds: [1, 2, 3, 4],
    lossMask: [0, 1, 1, 0],
    logprobs: [0, -0.5, -0.1, 0],
    turns: [{ turnIndex: 0, start: 1, end: 3 }],
  };
  for (const line of [JSON.stringify(row), JSON.stringify(row, null, 1)]) {
    const { ids, header, trainedCount } = readBranchRow(Buffer.from(line));
    expect([[...ids], header, trainedCount]).toEqual([row.tokenIds, { turns: row.turns }, 2]);
  }
  expect(() => readBranchRow(Buffer.from('{"tokenIds":[]}'))).toThrow("it has no tokenIds or no");
});

describe("readRow()", () => {
  const row = {
    format: 1,
    rolloutId: "a#0",
    groupId: "a",
    taskId: "a",
    segment: 0,
    promptLength: 1,
    tokenIds: [1, 2, 3, 4],
    lossMask: [0, 1, 1, 0],
    logprobs: [0, -0.5, -0.1, 0],
    policyVersions: ["", "7", "8", ""],
    turns: [{ turnIndex: 0, start: 1, end: 3, finish: "stop", promptHash: "", outputHash: "" }],
    reward: 1,
    outcome: "completed",
    stopReason: "user-left",
    metadata: {},
  };

  test("gives the row's numbers as columns, with the versions as bands", async () => {
    const { header, ids, logprobs, mask, kinds } = readRow(Buffer.from(JSON.stringify(row)), {
      vocabularyNote: "not here",
    });
    expect(header).toMatchObject({
      rolloutId: "a#0",
      tokenCount: 4,
      reward: 1,
      piecesNote: "not here",
      versions: [
        { start: 1, end: 2, version: "7" },
        { start: 2, end: 3, version: "8" },
      ],
    });
    expect([[...ids], [...logprobs], [...mask], [...kinds]]).toEqual([
      row.tokenIds,
      row.logprobs,
      row.lossMask,
      [0, 1, 1, 2],
    ]);
  });

  test("shows the missing parts of a damaged row", async () => {
    const damaged = { ...row, lossMask: [0, 1], logprobs: [0, null, -0.1, 0] };
    const { logprobs, mask } = readRow(Buffer.from(JSON.stringify(damaged)), {});
    expect([...mask]).toEqual([0, 1, 2, 2]);
    expect([...logprobs]).toEqual([0, Number.NaN, -0.1, 0]);
    expect(() => readRow(Buffer.from("{"), {})).toThrow("Cannot read a training row");
    expect(() => readRow(Buffer.from("{}"), {})).toThrow("it has no tokenIds or no turns");
  });
});

describe("scanRow()", () => {
  const text = fc.constantFrom("", "7", "8", 'odd"]\\,', "ü");
  const row = fc
    .array(fc.tuple(fc.nat(200_000), fc.constantFrom(0, 1), fc.double(), text), { maxLength: 30 })
    .map((tokens) => ({
      rolloutId: "a#0",
      tokenIds: tokens.map(([id]) => id),
      promptLength: 1,
      lossMask: tokens.map(([, bit]) => bit),
      logprobs: tokens.map(([, , logprob]) => (Number.isFinite(logprob) ? logprob : 0)),
      policyVersions: tokens.map(([, , , version]) => version),
      turns: [{ turnIndex: 0, start: 1, end: tokens.length }],
      metadata: { tokenIds: ["]"], text: "}" },
    }));

  test("reads what JSON.parse() reads, entry by entry", () => {
    fc.assert(
      fc.property(row, fc.boolean(), (value, isSpaced) => {
        const json = JSON.stringify(value);
        const lists = /\[[-\d.eE+,]+\]/g;
        const spaced = json.replaceAll(lists, (list) => list.replaceAll(",", ", "));
        const scanned = scanRow(Buffer.from(isSpaced ? spaced : json))!;
        const { tokenIds, lossMask, logprobs, policyVersions, ...rest } = value;
        expect(scanned.rest).toEqual(rest);
        expect([...scanned.ids]).toEqual(tokenIds);
        expect([...scanned.mask]).toEqual(lossMask);
        // JSON has no minus zero.
        expect([...scanned.logprobs]).toEqual(logprobs.map((logprob) => logprob + 0));
        const versions = tokenIds.map(
          (_, index) => scanned.versionRuns.findLast(({ start }) => start <= index)!.version,
        );
        expect(versions).toEqual(policyVersions);
      }),
      { numRuns: 200 },
    );
  });

  test("fills up lists that are shorter than the row, and cuts longer ones", () => {
    const line = Buffer.from('{"tokenIds":[5,6],"lossMask":[1],"logprobs":[-0.5,0,0],"turns":[]}');
    const { mask, logprobs, versionRuns } = scanRow(line)!;
    expect([[...mask], [...logprobs], versionRuns]).toEqual([[1, 2], [-0.5, 0], []]);
  });

  test.each([
    '{"tokenIds":[1,2,],"turns":[]}',
    '{"tokenIds":[01],"turns":[]}',
    '{"tokenIds":[1.5],"turns":[]}',
    '{"tokenIds":[99999999999],"turns":[]}',
    '{"tokenIds":[1],"logprobs":[null],"turns":[]}',
    '{"tokenIds":[1],"logprobs":[0x1],"turns":[]}',
    '{"tokenIds":[1],"logprobs":[0,],"turns":[]}',
    '{"tokenIds":[1],"lossMask":[true],"turns":[]}',
    '{"tokenIds":[1],"policyVersions":[7],"turns":[]}',
    '{"tokenIds":[1],"policyVersions":["\\x"],"turns":[]}',
    '{"tokenIds":[1],"turns":[}',
    '{"tokenIds":[1',
    '{"tokenIds":[1],"turns":[]} x',
    '{"turns":[]}',
    "[]",
    "",
  ])("leaves %j to JSON.parse()", (line) => {
    expect(scanRow(Buffer.from(line))).toBeUndefined();
  });
});

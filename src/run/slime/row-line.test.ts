import { describe, expect, test } from "vitest";
import { encodeRow } from "../disk/encode-line.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { readRowLine, textsAt, toRowLine } from "./row-line.ts";

const sample: Sample = {
  format: 1,
  rolloutId: 'a "tokenIds":[ \\ é#0',
  groupId: "]",
  taskId: "t",
  segment: 0,
  tokenIds: [5, 60, 700, 8000, 9],
  promptLength: 2,
  lossMask: [0, 0, 1, 1, 0],
  logprobs: [0, 0, -0.5, -1e-7, 0],
  policyVersions: ["", "", 'v"]1', "ü\\", ""],
  turns: [{ start: 2, end: 4, turnIndex: 0 } as never],
  outcome: "completed",
  stopReason: "finished",
  metadata: { policyVersions: ["x"] },
};

async function lineOf(row: Sample): Promise<Buffer> {
  return Buffer.concat((await encodeRow(row)).blocks).subarray(0, -1);
}

describe("readRowLine()", () => {
  test("gives the long lists as text and all other members as values", async () => {
    const row = readRowLine(await lineOf(sample))!;
    const { tokenIds, lossMask, logprobs, policyVersions, tokenCount, ...rest } = row;
    expect(tokenIds.toString()).toBe("5,60,700,8000,9");
    expect(lossMask.toString()).toBe("1,1,0");
    expect(logprobs.toString()).toBe("-0.5,-1e-7,0");
    expect(tokenCount).toBe(5);
    expect(textsAt(policyVersions, [0, 2, 3, 4])).toEqual(["", 'v"]1', "ü\\", ""]);
    const { tokenIds: _1, lossMask: _2, logprobs: _3, policyVersions: _4, ...others } = sample;
    expect(rest).toEqual(others);
  });

  test("reads a row that ends with its prompt, and an empty one", async () => {
    const none = { lossMask: [], logprobs: [], policyVersions: [] };
    const empty = readRowLine(await lineOf({ ...sample, ...none, tokenIds: [], promptLength: 0 }))!;
    expect([empty.tokenCount, empty.tokenIds.toString()]).toEqual([0, ""]);
    const prompt = { lossMask: [0, 0], logprobs: [0, 0], policyVersions: ["", ""] } as const;
    const unanswered = readRowLine(await lineOf({ ...sample, ...prompt, tokenIds: [1, 2] }))!;
    expect([unanswered.tokenCount, unanswered.lossMask.toString()]).toEqual([2, ""]);
  });

  test.each([
    ["spaces", (text: string) => text.replace('"tokenIds":[', '"tokenIds": [')],
    ["spaces between zeros", (text: string) => text.replace('"logprobs":[0,', '"logprobs":[0, ')],
    ["a cut line", (text: string) => text.slice(0, text.indexOf('"turns"'))],
    ["a cut list", (text: string) => text.slice(0, text.indexOf('"",'))],
    ["no JSON", () => "{"],
  ])("does not read a line with %s", async (_, change) => {
    const text = (await lineOf(sample)).toString();
    expect(readRowLine(Buffer.from(change(text)))).toBeUndefined();
  });
});

describe("toRowLine()", () => {
  test("gives what a line of the same row gives", async () => {
    expect(toRowLine(sample)).toEqual(readRowLine(await lineOf(sample)));
  });

  test("reads a row with values other than 0 in its prompt, which its line is not read with", async () => {
    const damaged = { ...sample, logprobs: [-1, 0, -0.5, -1e-7, 0] };
    expect(readRowLine(await lineOf(damaged))).toBeUndefined();
    expect(toRowLine(damaged).logprobs.toString()).toBe("-0.5,-1e-7,0");
  });
});

test("textsAt() gives an empty text after the end of a list", () => {
  expect(textsAt(Buffer.from('"1","2"'), [1, 2, 9])).toEqual(["2", "", ""]);
  expect(textsAt(Buffer.alloc(0), [0])).toEqual([""]);
});

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { verifyExport } from "../verify/exported/verify-export.ts";
import { verifyRun } from "../verify/verify-run.ts";
import { writeEveryKindRun } from "./every-kind-run.fixture.ts";
import type { ExportNote } from "./exporter.ts";
import { UsageError, describeError } from "../errors.ts";
import { exportRun } from "./export-run.ts";
import { tableContent } from "./export-table.ts";
import { exporters, type ExportTarget } from "./exporters.ts";

let run = "";
beforeAll(async () => {
  run = await mkdtemp(path.join(tmpdir(), "turnwright-export-"));
  await writeEveryKindRun(run);
});
afterAll(async () => {
  await rm(run, { recursive: true });
});

async function exported(to: ExportTarget, policyVersion?: number, dir = run) {
  const notes: ExportNote[] = [];
  const { content, summary } = await exportRun(dir, to, {
    onNote: (note) => notes.push(note),
    ...(policyVersion !== undefined && { policyVersion }),
  });
  const parts: Uint8Array[] = [];
  for await (const bytes of content) parts.push(bytes);
  const text = Buffer.concat(parts).toString("utf8");
  const records = (exporters[to].layout === "lines" ? text.trim().split("\n") : [text]).map(
    (line) => JSON.parse(line) as Record<string, unknown>,
  );
  return { records, notes, summary: summary(), text };
}

const id = (task: number, sample: number): string => `shop/test/${task}#${sample}`;

/** The attempts that no trainer's export can contain. */
const useless: readonly ExportNote[] = [
  { rolloutId: id(4, 0), kind: "failed", action: "leave-out" },
  { rolloutId: id(5, 0), kind: "unscored", action: "leave-out" },
  { rolloutId: id(6, 0), kind: "aborted", action: "leave-out" },
  { rolloutId: id(7, 0), kind: "empty", action: "leave-out" },
];
const cut: ExportNote = {
  rolloutId: id(1, 0),
  kind: "environmentTail",
  action: "cut",
  tokenCount: 2,
};
const split: ExportNote = { rolloutId: id(3, 0), kind: "segments", action: "leave-out" };
const oneRow: ExportNote = {
  rolloutId: id(3, 0),
  kind: "segments",
  action: "one-row",
  tokenCount: 8,
  rowCount: 1,
};
const byGroup = (notes: readonly ExportNote[]): readonly ExportNote[] =>
  notes.map((note) =>
    note === cut || note === oneRow ? note : { ...note, action: "leave-out-group" },
  );

test("the run that is exported is sound", async () => {
  expect(await verifyRun(run)).toMatchObject({ violations: [], episodes: 17 });
});

test("slime's prompts are texts on request, and are compared with the run as texts", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-prompt-"));
  try {
    await writeEveryKindRun(dir);
    const spell = async (ids: readonly number[]): Promise<string> =>
      ids.map((id) => `<${id}>`).join("");
    const file = path.join(dir, "rows.jsonl");
    await writeFile(file, (await exportRun(dir, "slime", { spell })).content);
    const [first] = (await readFile(file, "utf8")).split("\n", 1);
    expect((JSON.parse(first!) as { readonly prompt: unknown }).prompt).toBe("<1><2><3><10>");
    expect((await verifyExport(file, "slime", { run: dir, spell })).violations).toEqual([]);
    const [without] = (await verifyExport(file, "slime", { run: dir })).violations;
    expect(without).toMatchObject({ line: 1, rule: "run" });
  } finally {
    await rm(dir, { recursive: true });
  }
});

describe("a damaged row of a finished episode ends the export", () => {
  const changes: readonly [string, (lines: string[]) => void, string][] = [
    ["that is not JSON", (lines) => (lines[3] = lines[3]!.slice(0, 40)), "has 0 of the 1 rows"],
    ["with another on its line", (lines) => (lines[3] += lines[3]!), "has 0 of the 1 rows"],
    ["that is missing", (lines) => lines.splice(3, 1), "has 0 of the 1 rows"],
    ["that occurs twice", (lines) => lines.splice(3, 0, lines[3]!), "has 2 of the 1 rows"],
  ];
  test.each(changes)("%s", async (_, change, problem) => {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-damaged-"));
    try {
      await writeEveryKindRun(dir);
      const file = path.join(dir, "samples.jsonl");
      const lines = (await readFile(file, "utf8")).split("\n");
      const { rolloutId } = JSON.parse(lines[3]!) as { readonly rolloutId: string };
      change(lines);
      await writeFile(file, lines.join("\n"));
      const expected =
        `Cannot read ${file}: it ${problem} of ${rolloutId}; turnwright verify says which line is damaged, ` +
        "and the command that played the run writes its rows again";
      const readTable = async () => {
        for await (const _ of tableContent(dir, "parquet"));
      };
      await expect(exported("trl", undefined, dir)).rejects.toThrow(new UsageError(expected));
      await expect(readTable()).rejects.toThrow(new UsageError(expected));
    } finally {
      await rm(dir, { recursive: true });
    }
  });
});

describe("exportRun() leaves out, cuts and says so", () => {
  test.each<[ExportTarget, readonly ExportNote[], number, number]>([
    ["slime", byGroup(useless), 5, 11],
    ["miles", byGroup(useless), 5, 11],
    ["trl", byGroup([cut, split, ...useless]), 4, 8],
    ["openrlhf", byGroup([cut, oneRow, ...useless]), 5, 10],
    ["areal", byGroup([cut, ...useless]), 5, 11],
    ["verl", [cut, ...useless], 9, 14],
    ["skyrl", [cut, ...useless], 9, 15],
    ["nemo-rl", [cut, oneRow, ...useless], 9, 14],
    ["prime-rl", [cut, ...useless], 9, 15],
    ["tinker", [cut, ...useless], 9, 15],
    ["verifiers", [cut, ...useless], 9, 14],
    ["art", [cut, ...useless], 9, 14],
  ])("for %s", async (to, notes, groups, records) => {
    const found = await exported(to);
    expect(found.notes).toEqual(notes);
    const leftOut = notes.includes(oneRow) ? { leftOut: { rowCount: 1, tokenCount: 8 } } : {};
    expect(found.summary).toEqual({ to, groups, records, ...leftOut });
    if (to !== "skyrl") expect(found.records).toHaveLength(records);
  });
});

describe("exportRun() aligns", () => {
  // The attempt that was cut off after its last sampled token: 3 turns of 4 ids, a tail of 2.
  const prompt = [1, 2, 3, 11];
  const answers = [100, 101, 102, 99, 60, 61, 110, 111, 112, 99, 60, 61, 120, 121, 122, 99];
  const mask = [1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1];
  const turn = [-0.5, -0.25, -0.25, -0.125];
  const logprobs = [...turn, 0, 0, ...turn, 0, 0, ...turn];
  const zeros = [0, 0, 0, 0];

  test("TRL's completion without its prompt", async () => {
    const { records } = await exported("trl");
    expect(records[2]).toEqual({
      prompt_ids: prompt,
      completion_ids: answers,
      logprobs,
      env_mask: mask,
      env_reward: 0,
      group: "shop/test/1",
      rollout: id(1, 0),
    });
  });

  test("verl's response, with the range of its versions", async () => {
    const { records } = await exported("verl");
    expect(records[2]).toMatchObject({
      prompt_ids: prompt,
      response_ids: answers,
      response_mask: mask,
      response_logprobs: logprobs,
      reward_score: 0,
      num_turns: 6,
      extra_fields: { uid: "shop/test/1", status: "truncated", min_global_steps: 7 },
    });
    expect(records[4]).toMatchObject({
      extra_fields: { rollout_id: id(2, 0), min_global_steps: 7, max_global_steps: 8 },
    });
  });

  test("SkyRL's columns", async () => {
    const { records } = await exported("skyrl");
    const [columns] = records as [Record<string, unknown[]>];
    expect(Object.keys(columns)).toEqual([
      "prompt_token_ids",
      "response_ids",
      "rewards",
      "loss_masks",
      "rollout_logprobs",
      "stop_reasons",
      "trajectory_ids",
      "is_last_step",
      "rollout_metrics",
    ]);
    expect(columns["response_ids"]![2]).toEqual(answers);
    expect(columns["loss_masks"]![2]).toEqual(mask);
    expect(columns["rollout_logprobs"]![2]).toEqual(logprobs);
    expect(columns["stop_reasons"]!.slice(0, 4)).toEqual(["stop", "stop", "length", "length"]);
    expect(columns["trajectory_ids"]![3]).toEqual({
      instance_id: "shop/test/1",
      repetition_id: 1,
    });
    expect(columns["rewards"]).toEqual([1, 0, 0, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 0.5, 0]);
    const last = columns["rewards"]!.map((_, index) => index !== 6);
    expect(columns["is_last_step"]).toEqual(last);
  });

  test("OpenRLHF's complete row, not shifted", async () => {
    const { records } = await exported("openrlhf");
    expect(records[2]).toMatchObject({
      observation_tokens: [...prompt, ...answers],
      rollout_log_probs: [...zeros, ...logprobs],
      action_ranges: [
        [4, 8],
        [10, 14],
        [16, 20],
      ],
      truncated: true,
    });
  });

  test("AReaL's complete row, not shifted, with a version for each sampled token", async () => {
    const { records } = await exported("areal");
    const none = [-1, -1];
    expect(records[4]).toMatchObject({
      logprobs: expect.arrayContaining([-0.2]) as number[],
      versions: [...none, ...none, 7, 7, 7, 7, ...none, 7, 7, 8, 8, ...none, 8, 8, 8, 8],
      turn_ids: [...none, ...none, 0, 0, 0, 0, ...none, 1, 1, 1, 1, ...none, 2, 2, 2, 2],
      loss_mask: [...zeros, ...mask],
    });
  });

  test("prime-rl's and tinker's rows of one episode with its advantage", async () => {
    const { records } = await exported("prime-rl");
    const rows = records.filter((record) => record["id"] === id(3, 0));
    expect(rows).toHaveLength(2);
    expect(rows[1]).toMatchObject({
      sample: {
        token_ids: [1, 2, 3, 13, 50, 120, 121, 122, 99, 60, 61, 130, 131, 132, 99],
        advantages: [0, 0, 0, 0, 0, 0.5, 0.5, 0.5, 0.5, 0, 0, 0.5, 0.5, 0.5, 0.5],
        env_name: "shop",
      },
      reward: 1,
    });
    const datum = (await exported("tinker")).records[2] as {
      model_input: { chunks: [{ tokens: number[] }] };
      loss_fn_inputs: Record<string, { data: number[]; shape: number[] }>;
    };
    expect(datum.model_input.chunks[0].tokens).toEqual([...prompt, ...answers].slice(0, -1));
    expect(datum.loss_fn_inputs["target_tokens"]!.data).toEqual([...prompt, ...answers].slice(1));
    expect(datum.loss_fn_inputs["logprobs"]!.data).toEqual([...zeros, ...logprobs].slice(1));
    expect(datum.loss_fn_inputs["advantages"]!.data.slice(2, 9)).toEqual([
      0, -0.5, -0.5, -0.5, -0.5, 0, 0,
    ]);
    expect(datum.loss_fn_inputs["mask"]!.shape).toEqual([19]);
  });

  test("verifiers' branches, each from a root, with compact logprobs", async () => {
    const { records } = await exported("verifiers");
    const trace = records.find((record) => record["id"] === id(3, 0)) as unknown as {
      nodes: { parent: number | null; token_ids: number[]; logprobs: number[] }[];
    };
    expect(trace.nodes.map(({ parent }) => parent)).toEqual([null, 0, 1, 2, null, 4, 5, 6]);
    expect(trace.nodes.map(({ token_ids }) => token_ids)).toEqual([
      [1, 2, 3, 13],
      [100, 101, 102, 99],
      [60, 61],
      [110, 111, 112, 99],
      [1, 2, 3, 13, 50],
      [120, 121, 122, 99],
      [60, 61],
      [130, 131, 132, 99],
    ]);
    expect(trace.nodes.map(({ logprobs }) => logprobs.length)).toEqual([0, 4, 0, 4, 0, 4, 0, 4]);
  });

  test("NeMo Gym's calls, each with its complete prompt", async () => {
    const { records } = await exported("nemo-rl");
    expect(records[0]).toMatchObject({
      reward: 1,
      group: "shop/test/0",
      response: {
        output: [
          { prompt_token_ids: [1, 2, 3, 10], generation_token_ids: [100, 101, 102, 99] },
          { prompt_token_ids: [1, 2, 3, 10, 100, 101, 102, 99, 60, 61] },
        ],
      },
    });
  });
});

describe("exportRun() and versions", () => {
  const unnamed = async (version = ""): Promise<string> => {
    const dir = await mkdtemp(path.join(tmpdir(), "turnwright-export-"));
    for (const name of ["run.json", "episodes.jsonl", "samples.jsonl"]) {
      const text = await readFile(path.join(run, name), "utf8");
      await writeFile(path.join(dir, name), text.replaceAll(/"[78]"/g, JSON.stringify(version)));
    }
    return dir;
  };

  // SGLang calls the weights that it was started with "default".
  test.each([
    ["verl", ""],
    ["areal", ""],
    ["verl", "default"],
  ] as const)("%s refuses a token without one, here %j", async (to, version) => {
    const dir = await unnamed(version);
    await expect(exported(to, undefined, dir)).rejects.toThrow(
      "Cannot export shop/test/0#0: policyVersions[4] of segment 0 is " +
        `${JSON.stringify(version)}, and this trainer counts ` +
        "versions in whole numbers; say which version played with `policyVersion`",
    );
    const { records } = await exported(to, 12, dir);
    const said = to === "verl" ? { extra_fields: { min_global_steps: 12 } } : {};
    expect(records[0]).toMatchObject(said);
    if (to === "areal") expect(records[0]!["versions"]).toContain(12);
    await rm(dir, { recursive: true });
  });

  test("the others take it", async () => {
    const dir = await unnamed();
    for (const to of Object.keys(exporters) as ExportTarget[]) {
      if (exporters[to].rules.unnamedVersions.action === "refuse") continue;
      expect((await exported(to, undefined, dir)).summary.records).toBeGreaterThan(0);
    }
    await rm(dir, { recursive: true });
  });
});

test("exportRun() refuses a folder without a run", async () => {
  const error: unknown = await exportRun("/nowhere", "trl").catch((thrown: unknown) => thrown);
  // As the command line prints it: once, not in the system's words as well.
  expect(describeError(error)).toBe(
    "Cannot read /nowhere/run.json: no such file, expected a run's folder",
  );
});

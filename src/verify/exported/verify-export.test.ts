import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { writeEveryKindRun } from "../../export/every-kind-run.fixture.ts";
import { exportRun } from "../../export/export-run.ts";
import { exporters, type ExportTarget } from "../../export/exporters.ts";
import { verifyExport } from "./verify-export.ts";

const targets = Object.keys(exporters) as ExportTarget[];
const sound = new Map<ExportTarget, string>();
let scratch = "";
let run = "";

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-verify-"));
  run = path.join(scratch, "run");
  await writeEveryKindRun(run);
  for (const to of targets) {
    const parts: Uint8Array[] = [];
    for await (const bytes of (await exportRun(run, to)).content) parts.push(bytes);
    sound.set(to, Buffer.concat(parts).toString("utf8"));
  }
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** A value with members; the tests know their types. */
// oxlint-disable-next-line typescript/no-explicit-any
type Loose = any;

/** The file with one record changed, or all of them. */
async function changed(as: ExportTarget, change: (records: Loose[]) => void): Promise<string> {
  const file = path.join(scratch, `changed.${as}`);
  const text = sound.get(as)!;
  if (exporters[as].layout === "lines") {
    const records = text
      .trim()
      .split("\n")
      .map((line): Loose => JSON.parse(line));
    change(records);
    await writeFile(file, records.map((record) => `${JSON.stringify(record)}\n`).join(""));
  } else {
    const document: Loose = JSON.parse(text);
    change([document]);
    await writeFile(file, JSON.stringify(document));
  }
  return file;
}

test("looks at special tokens if the model is known, in every form", async () => {
  const special = {
    vocabularySize: 200,
    stops: new Set([99]),
    controls: new Map([
      [60, "<|im_start|>"],
      [99, "<|im_end|>"],
    ]),
  };
  for (const as of targets) {
    const file = await changed(as, () => {});
    expect((await verifyExport(file, as, { special })).violations).toEqual([]);
    const [first] = (await verifyExport(file, as, { special: { ...special, vocabularySize: 99 } }))
      .violations;
    expect([as, first?.rule]).toEqual([as, "special-tokens"]);
  }
});

async function found(as: ExportTarget, change: (records: Loose[]) => void, against?: string) {
  const file = await changed(as, change);
  const { violations } = await verifyExport(
    file,
    as,
    against === undefined ? {} : { run: against },
  );
  return violations.map(({ line, rule, detail }) => `${line} ${rule}: ${detail}`);
}

describe("verifyExport()", () => {
  test.each(targets)(
    "finds nothing in a sound export for %s, alone and against its run",
    async (as) => {
      expect(await found(as, () => {})).toEqual([]);
      expect(await found(as, () => {}, run)).toEqual([]);
    },
  );

  test.each<[ExportTarget, string, (records: Loose[]) => void, string]>([
    [
      "slime",
      "a mask that is shorter",
      (r) => r[1].loss_mask.pop(),
      "2 length: loss_mask has 15 entries of mask for 16 ids",
    ],
    [
      "slime",
      "a reward of null",
      (r) => (r[0].reward = null),
      "1 reward: the reward is null, expected a number",
    ],
    [
      "slime",
      "a response that is the whole row",
      (r) => (r[0].response_length = 14),
      "1 length: response_length is 14 for 14 tokens",
    ],
    [
      "trl",
      "a tail",
      (r) => {
        r[0].completion_ids.push(60);
        r[0].env_mask.push(0);
        r[0].logprobs.push(0);
      },
      "1 tail: env_mask[10] comes after the last trained token",
    ],
    [
      "trl",
      "an empty completion",
      (r) => {
        for (const name of ["completion_ids", "env_mask", "logprobs"]) r[3][name] = [];
      },
      "4 empty: no token of the row is trained",
    ],
    [
      "trl",
      "a prompt that is gone",
      (r) => (r[2].prompt_ids = []),
      "3 prompt: completion_ids[0] is trained, with no prompt before it",
    ],
    [
      "trl",
      "a row twice",
      (r) => r.splice(1, 0, r[0]),
      '2 trained-once: the row of "shop/test/0#0" is there already, at 1',
    ],
    [
      "trl",
      "a group that is torn apart",
      (r) => r.push(r.shift()),
      '8 group: the group "shop/test/0" continues here, and its earlier rows end at 1',
    ],
    [
      "verl",
      "a logprob of null",
      (r) => (r[4].response_logprobs[7] = null),
      "5 logprobs: response_logprobs[7] is null, expected a logprob where it is trained, 0 elsewhere",
    ],
    [
      "verl",
      "logprobs that are shifted",
      (r) => r[4].response_logprobs.unshift(r[4].response_logprobs.pop()),
      "5 logprobs: response_logprobs[4] is -0.125, expected a logprob where it is trained, 0 elsewhere",
    ],
    [
      "verl",
      "a mask of 2",
      (r) => (r[0].response_mask[1] = 2),
      "1 mask: response_mask[1] is 2, expected 0 or 1",
    ],
    ["verl", "no group", (r) => delete r[0].extra_fields.uid, "1 group: the group is undefined"],
    [
      "skyrl",
      "a column that is too short",
      (r) => r[0].loss_masks.pop(),
      "15 shape: loss_masks is missing or no list",
    ],
    [
      "skyrl",
      "an id that is none",
      (r) => (r[0].response_ids[2][3] = -1),
      "3 token-ids: response_ids[3] is -1, expected a token id",
    ],
    [
      "openrlhf",
      "a range that overlaps",
      (r) => (r[0].action_ranges[1][0] = 7),
      "1 mask: action_ranges[1] is [7,14], expected a range of 14 ids from 8 on",
    ],
    [
      "areal",
      "a version that goes back",
      (r) => (r[4].versions[18] = 7),
      "5 policy-versions: versions[18] is 7, after a token of version 8",
    ],
    [
      "areal",
      "a version where nothing was sampled",
      (r) => (r[4].versions[0] = 0),
      "5 policy-versions: versions[0] is 0, expected a whole number where it is trained, -1 elsewhere",
    ],
    [
      "areal",
      "a row that is trained from its first token",
      (r) => {
        r[0].loss_mask[0] = 1;
        r[0].logprobs[0] = -1;
        r[0].versions[0] = 7;
      },
      "1 prompt: input_ids[0] is trained, with no prompt before it",
    ],
    [
      "prime-rl",
      "an advantage outside the mask",
      (r) => (r[0].sample.advantages[0] = 0.5),
      "1 advantages: sample.advantages[0] is 0.5, expected one number where it is trained, 0 elsewhere; verify an export with --turn-discount or --teacher with that flag",
    ],
    [
      "prime-rl",
      "a mask of numbers that is no mask",
      (r) => (r[0].sample.mask[4] = "yes"),
      '1 mask: sample.mask[4] is "yes", expected 0 or 1',
    ],
    [
      "verifiers",
      "logprobs that are not compact",
      (r) => r[0].nodes[1].logprobs.push(0),
      "1 length: nodes[1].logprobs has 5 entries for 4 trained tokens",
    ],
    [
      "verifiers",
      "a node that follows another",
      (r) => (r[0].nodes[2].parent = 0),
      "1 shape: nodes[2].parent is 0, expected 1, or null for a root",
    ],
    [
      "nemo-rl",
      "a prompt that does not go on",
      (r) => (r[0].response.output[1].prompt_token_ids[5] = 9),
      "1 alignment: response.output[1].prompt_token_ids[5] is 9, and 101 before",
    ],
    [
      "nemo-rl",
      "a logprob too few",
      (r) => r[0].response.output[0].generation_log_probs.pop(),
      "1 length: response.output[0].generation_log_probs has 3 entries for 4 ids",
    ],
    [
      "tinker",
      "targets that are not shifted",
      (r) => (r[0].loss_fn_inputs.target_tokens.data = [...r[0].model_input.chunks[0].tokens]),
      "1 alignment: model_input.chunks[0].tokens[1] is 2, and loss_fn_inputs.target_tokens.data[0] is 1",
    ],
  ])("finds for %s %s", async (as, _, harm, message) => {
    const messages = await found(as, harm);
    expect(messages.join("\n")).toContain(message);
  });

  /** The attempt with two rows, by the form of the record. */
  const two = "shop/test/3#0";
  const at = (r: Loose[], name: string): Loose[] =>
    r.filter(
      (record) => name.split(".").reduce((value: Loose, key) => value?.[key], record) === two,
    );
  const rowsOf = (r: Loose[]): Loose[] => at(r, "metadata.rollout");

  test.each<[ExportTarget, string, (records: Loose[]) => void, string]>([
    [
      "slime",
      "a reward that is divided by the rows",
      (r) => (rowsOf(r)[1].reward = 0.5),
      `the reward is 0.5, and 1 in an earlier row of "${two}"`,
    ],
    [
      "slime",
      "a rollout id a row",
      (r) => (rowsOf(r)[1].rollout_id = 99),
      `the number is 99, and 6 in an earlier row of "${two}"`,
    ],
    [
      "miles",
      "two attempts with one rollout id",
      (r) => at(r, "metadata.rollout").forEach((row) => (row.rollout_id = 0)),
      `"${two}" has the number 0 of "shop/test/0#0"`,
    ],
    [
      "slime",
      "a row that is missing",
      (r) => r.splice(r.indexOf(rowsOf(r)[1]), 1),
      `metadata.lineage.rowCount of "${two}" is 2, and the file has 1`,
    ],
    [
      "slime",
      "rows that are exchanged",
      (r) => {
        const index = r.indexOf(rowsOf(r)[0]);
        [r[index], r[index + 1]] = [r[index + 1], r[index]];
      },
      `metadata.lineage.row is 1 at row 0 of "${two}", expected 0`,
    ],
    [
      "slime",
      "a row of the attempt after another attempt",
      (r) => {
        const index = r.indexOf(rowsOf(r)[1]);
        [r[index], r[index + 1]] = [r[index + 1], r[index]];
      },
      `"${two}" continues here, and its earlier rows end at 7`,
    ],
    [
      "miles",
      "another count of trained tokens",
      (r) => (rowsOf(r)[1].metadata.lineage.attemptTokenCount = 8),
      "metadata.lineage.attemptTokenCount is 8 at row 1",
    ],
    [
      "slime",
      "a last row without a trained token",
      (r) => {
        const row = rowsOf(r)[1];
        row.loss_mask = row.loss_mask.map(() => 0);
        row.rollout_log_probs = row.loss_mask;
      },
      "8 empty: no token of the row is trained",
    ],
    [
      "slime",
      "a row that is handed over twice",
      (r) => r.splice(r.indexOf(rowsOf(r)[1]), 0, rowsOf(r)[1]),
      `the row of "${two}" is there already`,
    ],
    [
      "skyrl",
      "a step that is wrongly the last",
      (r) => (r[0].is_last_step[6] = true),
      'the last row of "shop/test/3#0" stands before, by its is_last_step',
    ],
    [
      "skyrl",
      "a last step that is none",
      (r) => (r[0].is_last_step[7] = false),
      'is_last_step is false at the last row of "shop/test/3#0"',
    ],
    [
      "skyrl",
      "no last steps",
      (r) => delete r[0].is_last_step,
      '"shop/test/3#0" has several rows, and is_last_step is missing',
    ],
    [
      "skyrl",
      "a reward on the last row only",
      (r) => (r[0].rewards[6] = 0),
      'the reward is 1, and 0 in an earlier row of "shop/test/3#0"',
    ],
    [
      "skyrl",
      "a place in the group a row",
      (r) => (r[0].trajectory_ids[7].repetition_id = 5),
      'is_last_step is false at the last row of "shop/test/3#0"',
    ],
    [
      "verl",
      "an output a line",
      (r) => {
        const index = r.findIndex((record) => "outputs" in record);
        r.splice(index, 1, ...r[index].outputs);
      },
      `"${two}" has a record already, and each attempt has one`,
    ],
    [
      "verl",
      "outputs of two attempts in one list",
      (r) => {
        const record = r.find((one) => "outputs" in one);
        record.outputs[1].extra_fields.rollout_id = "shop/test/3#1";
      },
      'outputs[1].extra_fields.rollout_id is "shop/test/3#1", and "shop/test/3#0" in the first output',
    ],
    [
      "verl",
      "an output without reward_extra_info",
      (r) => delete r.find((one) => "outputs" in one).outputs[1].extra_fields.reward_extra_info,
      "outputs[1].extra_fields has no reward_extra_info",
    ],
    [
      "verl",
      "a last output without a trained token",
      (r) => {
        const [, last] = r.find((one) => "outputs" in one).outputs;
        last.response_mask = last.response_mask.map(() => 0);
        last.response_logprobs = last.response_mask;
      },
      "empty: no token of the row is trained",
    ],
    [
      "tinker",
      "an advantage that counts rows",
      (r) => {
        for (const row of at(r, "rollout")) {
          const { advantages, mask } = row.loss_fn_inputs;
          advantages.data = mask.data.map((bit: number) => (bit === 1 ? 1 / 3 : 0));
        }
      },
      "expected 0.5: the reward minus the mean of the 2 attempts",
    ],
    [
      "prime-rl",
      "another advantage in the second row",
      (r) => {
        const { sample } = at(r, "id")[1];
        sample.advantages = sample.mask.map((bit: boolean) => (bit ? 0.25 : 0));
      },
      `the advantage is 0.25, and 0.5 in another row of "${two}"`,
    ],
    [
      "prime-rl",
      "a row that is missing",
      (r) => r.splice(r.indexOf(at(r, "id")[1]), 1),
      `lineage.rowCount of "${two}" is 2, and the file has 1`,
    ],
    [
      "tinker",
      "a row that is handed over twice",
      (r) => r.splice(r.indexOf(at(r, "rollout")[1]), 0, at(r, "rollout")[1]),
      `the row of "${two}" is there already`,
    ],
    [
      "areal",
      "rows of two groups that are mixed",
      (r) => r.splice(0, 0, r.splice(r.indexOf(at(r, "rollout")[1]), 1)[0]),
      `"${two}" continues here, and its earlier rows end at 1`,
    ],
    [
      "art",
      "a choice whose logprobs belong to other ids",
      (r) => {
        const { token_ids } = at(r, "metadata.rollout")[0].additional_histories[0]
          .messages_and_choices[1];
        [token_ids[0], token_ids[1]] = [token_ids[1], token_ids[0]];
      },
      'token is "token_id:120", and the id is 121',
    ],
    [
      "art",
      "a trajectory a row",
      (r) => {
        const [record] = at(r, "metadata.rollout");
        const [{ messages_and_choices }] = record.additional_histories.splice(0);
        r.splice(r.indexOf(record) + 1, 0, { ...record, messages_and_choices });
      },
      `"${two}" has a record already, and each attempt has one`,
    ],
  ])("finds for %s, in an attempt of several rows, %s", async (as, _, harm, message) => {
    expect((await found(as, harm)).join("\n")).toContain(message);
    expect(await found(as, harm, run)).not.toEqual([]);
  });

  test.each<[ExportTarget, (records: Loose[]) => void]>([
    ["slime", (r) => repeatFirst(rowsOf(r), "metadata")],
    ["prime-rl", (r) => repeatFirst(at(r, "id"))],
    ["verl", (r) => repeatFirst(r.find((one) => "outputs" in one).outputs)],
    [
      "skyrl",
      ([r]) =>
        ["prompt_token_ids", "response_ids", "loss_masks", "rollout_logprobs"].forEach(
          (name) => (r[name][7] = r[name][6]),
        ),
    ],
  ])("takes two equal rows of an attempt for two, for %s", async (as, change) => {
    expect(await found(as, change)).toEqual([]);
  });

  /** Makes the second row of an attempt equal to the first one, apart from its place. */
  function repeatFirst(rows: Loose[], holder?: string): void {
    const [first, second] = rows;
    const lineages = rows.map((row) => (holder === undefined ? row : row[holder]).lineage);
    const kept = structuredClone(lineages[1]);
    Object.assign(second, structuredClone(first));
    if (kept === undefined) return;
    (holder === undefined ? second : second[holder]).lineage = kept;
    const trained = (first.loss_mask ?? first.sample.mask).filter(Boolean).length;
    kept.attemptTokenCount = lineages[0].attemptTokenCount = 2 * trained;
  }

  test.each<[ExportTarget, (records: Loose[]) => void, string]>([
    [
      "trl",
      (r) => (r[2].completion_ids[3] = 100),
      "3 run: completion_ids[3] is 100, expected 99 by the run",
    ],
    ["slime", (r) => (r[0].reward = 0), "1 run: reward is 0, expected 1 by the run"],
    [
      "verl",
      (r) => (r[5].response_logprobs[2] = -0.3),
      "6 run: response_logprobs[2] is -0.3, expected -0.2 by the run",
    ],
    ["skyrl", (r) => (r[0].rewards[1] = 1), "2 run: rewards is 1, expected 0 by the run"],
    [
      "openrlhf",
      (r) => (r[0].action_ranges[0][1] = 9),
      "1 run: action_ranges[0][1] is 9, expected 8 by the run",
    ],
    ["areal", (r) => r.pop(), "11 run: the run gives more records"],
    [
      "tinker",
      (r) =>
        r.push({ ...r.find(({ group }) => group === "shop/test/5"), rollout: "x", group: "y" }),
      "16 run: the run gives no such record",
    ],
  ])("finds against the run what %s's file alone does not show", async (as, harm, message) => {
    expect(await found(as, harm)).toEqual([]);
    expect(await found(as, harm, run)).toEqual([message]);
  });

  test("equal responses to two prompts of an attempt are two rows", async () => {
    const violations = await found("verl", (r) => {
      const [first, second] = r.find((record) => "outputs" in record).outputs;
      for (const name of ["response_ids", "response_mask", "response_logprobs"]) {
        second[name] = first[name];
      }
    });
    expect(violations).toEqual([]);
  });

  test("an export for skyrl whose attempts have one row each is the run's, without is_last_step", async () => {
    const plain = path.join(scratch, "plain");
    await writeEveryKindRun(plain, [0, 2]);
    const file = path.join(scratch, "plain.json");
    const parts: Uint8Array[] = [];
    for await (const bytes of (await exportRun(plain, "skyrl")).content) parts.push(bytes);
    await writeFile(file, Buffer.concat(parts));
    expect(Buffer.concat(parts).includes("is_last_step")).toBe(false);
    expect((await verifyExport(file, "skyrl", { run: plain })).violations).toEqual([]);
  });

  test("finds a torn line, and says which file cannot be read", async () => {
    const file = path.join(scratch, "torn");
    await writeFile(file, `${sound.get("trl")!}{"prompt_ids":[1`);
    expect((await verifyExport(file, "trl")).violations).toEqual([
      { line: 9, rule: "json", detail: "the record is not a JSON object (a torn line?)" },
    ]);
    await expect(verifyExport("/nowhere/rows", "trl")).rejects.toThrow("Cannot read /nowhere/rows");
  });
});

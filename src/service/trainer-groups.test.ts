import { appendFile, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Engine } from "../engine/engine.ts";
import { writeEveryKindRun } from "../export/every-kind-run.fixture.ts";
import { exportRun } from "../export/export-run.ts";
import { exporters, type ExportTarget } from "../export/exporters.ts";
import { sayNote } from "../export/say-note.ts";
import { readRunGroups } from "../export/read-run-groups.ts";
import { caller, lampEngine, openLamps, twoLamps } from "./lamp-service.fixture.ts";
import { BatchStories } from "./batch-stories.ts";
import { TrainerGroups } from "./trainer-groups.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-forms-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

type Fields = Readonly<Record<string, unknown>>;

interface FormedGroup {
  readonly batch: string;
  readonly taskIndex: number;
  readonly format: string;
  readonly records: readonly Fields[];
  readonly notes: readonly { readonly message: string; readonly action: string }[];
  readonly refused?: string;
}

const targets = Object.keys(exporters) as ExportTarget[];

function groupsOf(body: unknown): readonly FormedGroup[] {
  return (body as readonly string[])
    .map((line) => JSON.parse(line) as { readonly type: string; readonly group: FormedGroup })
    .filter(({ type }) => type === "group")
    .map(({ group }) => group);
}

/** The file that `turnwright export` writes for a run. */
async function exportedRows(run: string, to: ExportTarget, version?: number): Promise<Fields[]> {
  const options = version === undefined ? {} : { policyVersion: version };
  let text = "";
  for await (const bytes of (await exportRun(run, to, options)).content) {
    text += Buffer.from(bytes).toString("utf8");
  }
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as Fields);
}

/** Objects of lists put together, as one file has them. */
function joinColumns(objects: readonly Fields[]): Fields {
  const isStepWise = objects.some((object) => "is_last_step" in object);
  const lists = objects.flatMap((object) => {
    // A group without the column has one row an attempt.
    const lastSteps = (object["rewards"] as unknown[]).map(() => true);
    return Object.entries(isStepWise ? { is_last_step: lastSteps, ...object } : object);
  });
  const joined: Record<string, unknown> = {};
  for (const [name, value] of lists) {
    const before = joined[name];
    joined[name] = Array.isArray(value)
      ? [...((before ?? []) as unknown[]), ...(value as unknown[])]
      : value;
  }
  return joined;
}

describe("groups in a trainer's form", () => {
  test.each(targets)("are the rows that a batch's folder is exported to: %s", async (to) => {
    await using service = await openLamps(dir);
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 3 });
    await call("POST", "/v1/batches", twoLamps);
    const { body } = await call("GET", `/v1/groups?batch=b1&format=${to}`);
    const groups = groupsOf(body).toSorted((one, other) => one.taskIndex - other.taskIndex);
    expect(groups.map(({ format, refused, notes }) => [format, refused, notes])).toEqual([
      [to, undefined, []],
      [to, undefined, []],
    ]);
    const rows = groups.flatMap(({ records }) => records);
    expect(rows).toHaveLength(to === "skyrl" ? 2 : 4);
    const file = await exportedRows(path.join(dir, "batches", "b1"), to);
    expect(to === "skyrl" ? [joinColumns(rows)] : rows).toEqual(file);
    const last = JSON.parse((body as string[]).at(-1)!) as Fields;
    expect(last).toEqual({ type: "end", cursor: 2, state: "finished" });
  });

  test.each(targets)("are cut and left out by the rules of the files: %s", async (to) => {
    await writeEveryKindRun(dir);
    const run = await readRunGroups(dir);
    const forms = new TrainerGroups(async (ids) => await Promise.resolve(ids.join(" ")));
    const records: Fields[] = [];
    const messages: string[] = [];
    let groupIndex = 0;
    for await (const members of run.groups()) {
      const attempts = members.map(({ rolloutId, episode, samples }, sampleIndex) => ({
        rolloutId,
        sampleIndex,
        rows: samples,
        outcome: episode?.outcome ?? "aborted",
      }));
      const place = { folder: dir, groupIndex, temperature: 1 };
      const formed = (await forms.toForm({ batch: "b1", attempts }, place, {
        to,
        policyVersion: 7,
      })) as FormedGroup;
      expect(formed.refused).toBeUndefined();
      records.push(...formed.records);
      messages.push(...formed.notes.map(({ message }) => message));
      groupIndex += 1;
    }
    const file = await exportedRows(dir, to, 7);
    expect(to === "skyrl" ? [joinColumns(records)] : records).toEqual(file);
    const said: string[] = [];
    const { content } = await exportRun(dir, to, {
      policyVersion: 7,
      onNote: (note) => said.push(sayNote(note, to)),
    });
    for await (const _bytes of content);
    expect(messages).toEqual(said);
    expect(messages.length).toBeGreaterThan(3);
  });

  test("of several batches have names and places of their own", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    await call("POST", "/v1/policy", { version: 3 });
    for (const key of ["one", "two"]) {
      const { body } = await call("POST", "/v1/batches", { ...twoLamps, key, tasks: [4] });
      await call("GET", `/v1/groups?batch=${(body as { batch: string }).batch}`);
    }
    const read = async (format: string): Promise<readonly Fields[]> => {
      const { streamGroups } = await import("./group-stream.ts");
      const form = { to: format as ExportTarget };
      const reader = streamGroups(service, { cursor: 0, form }).getReader();
      const lines = [];
      for (let each = 0; each < 2; each++) {
        lines.push(Buffer.from((await reader.read()).value!).toString());
      }
      await reader.cancel();
      return groupsOf(lines).flatMap(({ records }) => records);
    };
    const verl = (await read("verl")).map(({ extra_fields }) => extra_fields as Fields);
    expect(verl.map(({ uid, rollout_id }) => [uid, rollout_id])).toEqual([
      ["b1/lamp/test/4", "b1/lamp/test/4#0"],
      ["b1/lamp/test/4", "b1/lamp/test/4#1"],
      ["b2/lamp/test/4", "b2/lamp/test/4#0"],
      ["b2/lamp/test/4", "b2/lamp/test/4#1"],
    ]);
    const slime = await read("slime");
    expect(slime.map((row) => [row["group_index"], row["index"], row["rollout_id"]])).toEqual([
      [0, 0, 0],
      [0, 1, 1],
      [65_536, 65_536, 65_536],
      [65_536, 65_537, 65_537],
    ]);
  });

  test("are refused at the place of a missing file, with the remedy, and returned once the file is there", async () => {
    const inner = lampEngine();
    const engine: Engine = {
      ...inner,
      async generate(...call) {
        const generation = await inner.generate(...call);
        const pieces = generation.pieces.map((piece) => ({ ...piece, policyVersion: "" }));
        return { ...generation, pieces };
      },
    };
    await using service = await openLamps(dir, { engine });
    const call = caller(service);
    await call("POST", "/v1/batches", { ...twoLamps, tasks: [4] });
    const [group] = groupsOf((await call("GET", "/v1/groups?batch=b1&format=areal")).body);
    expect(group!.records).toEqual([]);
    expect(group!.refused).toMatch(
      /^Cannot export lamp\/test\/4#0: policyVersions\[\d+\] .*whole numbers; say which version played with the parameter policyVersion=N \(in Python policy_version=N\)$/,
    );
    const named = await call("GET", "/v1/groups?batch=b1&format=areal&policyVersion=12");
    const [row] = groupsOf(named.body)[0]!.records;
    expect(new Set(row!["versions"] as number[])).toEqual(new Set([-1, 12]));
  });

  test("have slime's prompts as text on request", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    await call("POST", "/v1/batches", { ...twoLamps, tasks: [4] });
    const [plain] = groupsOf((await call("GET", "/v1/groups?batch=b1&format=slime")).body);
    expect(Array.isArray(plain!.records[0]!["prompt"])).toBe(true);
    const text = await call("GET", "/v1/groups?batch=b1&format=slime&promptText=true");
    expect(typeof groupsOf(text.body)[0]!.records[0]!["prompt"]).toBe("string");
  });

  test("are found again after the batch's file was rewritten", async () => {
    await writeFile(
      path.join(dir, "episodes.jsonl"),
      '{"rolloutId":"gone"}\n{"rolloutId":"a#0"}\n',
    );
    const stories = new BatchStories(dir);
    expect([...(await stories.read(["a#0"])).values()]).toEqual([{ rolloutId: "a#0" }]);
    await writeFile(path.join(dir, "episodes.jsonl"), '{"rolloutId":"a#0","reward":1}\n{"roll');
    expect([...(await stories.read(["a#0"])).values()]).toEqual([{ rolloutId: "a#0", reward: 1 }]);
    await expect(stories.read(["b#0"])).rejects.toThrow("Cannot find b#0 in");
    await appendFile(path.join(dir, "episodes.jsonl"), 'outId":"b#0"}\n');
    expect([...(await stories.read(["b#0", "a#0"])).keys()]).toEqual(["b#0", "a#0"]);
  });

  test("are found again by all concurrent readers after the batch's file was rewritten", async () => {
    const write = async (first: string) => {
      const lines = [{ rolloutId: first }, { rolloutId: "a#1" }, { rolloutId: "a#2", long }];
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
      await writeFile(path.join(dir, "episodes.jsonl"), text);
    };
    const long = "x".repeat(2 ** 24);
    await write("a#0");
    const stories = new BatchStories(dir);
    await stories.read(["a#1", "a#2"]);
    await write("another");
    // The long one is read until the other looks through the file already.
    const found = await Promise.all([stories.read(["a#1"]), stories.read(["a#2"])]);
    expect(found.map((some) => [...some.keys()])).toEqual([["a#1"], ["a#2"]]);
  });

  test("say so if the batch's folder is gone", async () => {
    await using service = await openLamps(dir);
    const call = caller(service);
    await call("POST", "/v1/batches", { ...twoLamps, tasks: [4] });
    await call("GET", "/v1/groups?batch=b1");
    await rm(path.join(dir, "batches", "b1"), { recursive: true });
    const [group] = groupsOf((await call("GET", "/v1/groups?batch=b1&format=trl")).body);
    expect(group!.refused).toBe(
      "Cannot find lamp/test/4#0 in b1/episodes.jsonl: expected the batch's folder as the service wrote it",
    );
  });

  test.each([
    ["format=parquet", `"format" is wrong: expected one of slime, miles, trl`],
    ["format=__proto__", `"format" is wrong`],
    ["policyVersion=3", `"policyVersion" goes with "format" alone`],
    ["format=trl&policyVersion=-1", `"policyVersion" is wrong`],
    ["format=trl&promptText=true", `"promptText" goes with "format=slime or miles" alone`],
    ["format=slime&promptText=1", `"promptText" is wrong: expected true or false`],
    ["format=trl&format=trl", `The parameter "format" is given twice`],
  ])("refuse %s", async (query, message) => {
    await using service = await openLamps(dir);
    const { status, body } = await caller(service)("GET", `/v1/groups?${query}`);
    expect([status, body]).toMatchObject([400, { error: { code: "bad-request" } }]);
    expect((body as { error: { message: string } }).error.message).toContain(message);
  });
});

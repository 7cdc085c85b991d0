import { copyFile, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeSoundRun } from "../../src/verify/sound-run.fixture.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines } from "../support/run-cli.ts";

let scratch = "";
let run = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-lone-file-"));
  run = path.join(scratch, "run");
  await writeSoundRun(run);
  // A reward that was changed after the run, and is still valid for a row.
  const file = path.join(run, "samples.jsonl");
  const text = await readFile(file, "utf8");
  const changed = text.replace(
    /"reward":(\d)/,
    (_, reward) => `"reward":${reward === "1" ? 0 : 1}`,
  );
  expect(changed).not.toBe(text);
  await writeFile(file, changed);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

test("verify of samples.jsonl says that only this file was checked, and which command checks the run", async () => {
  const alone = await callCli(["verify", path.join(run, "samples.jsonl")]);
  expect(jsonLines(alone.stdout)).toMatchObject([
    {
      note: `only this file was checked: \`turnwright verify ${run}\` checks it against the other files of its run`,
      violations: [],
    },
  ]);
  const whole = await callCli(["verify", run]);
  expect(whole.status).toBe(1);
  expect(jsonLines(whole.stdout)).toMatchObject([{ violations: expect.any(Array) as unknown }]);
  expect(JSON.stringify(jsonLines(whole.stdout))).toContain('"file":"samples.jsonl"');
});

test("verify of a samples file without a run says so too, also without rows", async () => {
  const copy = path.join(scratch, "copy.jsonl");
  await copyFile(path.join(run, "samples.jsonl"), copy);
  const empty = path.join(scratch, "empty.jsonl");
  await writeFile(empty, "");
  const note =
    "only this file was checked: `turnwright verify` on the run's folder checks it against the other files";
  expect(jsonLines((await callCli(["verify", copy, empty])).stdout)).toMatchObject([
    { file: copy, note },
    { file: empty, samples: 0, note: `the file has no rows; ${note}` },
  ]);
});

test("verify of an export says so if no run is named", async () => {
  const sound = path.join(scratch, "sound");
  await writeSoundRun(sound);
  const file = path.join(scratch, "rows.jsonl");
  await callCli(["export", sound, "--to", "slime", "--out", file]);
  const note = "only this file was checked: --run DIR checks it against its run";
  const [alone] = jsonLines((await callCli(["verify", file, "--as", "slime"])).stdout);
  expect(alone).toMatchObject({ note });
  const [held] = jsonLines(
    (await callCli(["verify", file, "--as", "slime", "--run", sound])).stdout,
  );
  expect(held).not.toHaveProperty("note");
});

test.each([
  ["episodes.jsonl", ""],
  ["events.jsonl", ""],
  ["run.json", ""],
  ["samples.slime.jsonl", ", or --as slime for this file alone"],
])("verify of %s names what checks it", async (name, more) => {
  const { status, stderr } = await callCli(["verify", path.join(run, name)]);
  expect({ status, stderr }).toEqual({
    status: 2,
    stderr:
      `turnwright: Cannot check ${path.join(run, name)} alone: it holds no samples, ` +
      `expected the run's folder ${run}, which is checked file by file${more}\n`,
  });
});

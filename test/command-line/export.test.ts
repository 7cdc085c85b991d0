import { cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { writeEveryKindRun } from "../../src/export/every-kind-run.fixture.ts";
import { addTeacher } from "../../src/export/teacher/teacher-run.fixture.ts";
import type { RunManifest } from "../../src/run/folder/run-folder.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines } from "../support/run-cli.ts";

let scratch = "";
let run = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-export-cli-"));
  run = path.join(scratch, "run");
  await writeEveryKindRun(run);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

test("export writes rows to standard output, and reports the omitted ones", async () => {
  const { status, stdout, stderr } = await callCli(["export", run, "--to", "verl"]);
  expect(status).toBe(0);
  expect(jsonLines(stdout)).toHaveLength(14);
  expect(stderr.trim().split("\n")).toEqual([
    "Cut 2 tokens of shop/test/1#0: verl puts the reward on the last response token",
    "Left out shop/test/4#0: shop/test/4#0 failed, and it has no reward",
    "Left out shop/test/5#0: shop/test/5#0 was not scored, and it has no reward",
    "Left out shop/test/6#0: shop/test/6#0 is not finished, and it has no reward",
    "Left out shop/test/7#0: shop/test/7#0 has no sampled tokens, and no token in it can " +
      "be trained",
    "14 rows of 9 groups for verl",
  ]);
});

test("export creates the folder of its file", async () => {
  const file = path.join(scratch, "new", "folder", "rows.jsonl");
  expect(await callCli(["export", run, "--to", "verl", "--out", file])).toMatchObject({
    status: 0,
  });
  expect(jsonLines(await readFile(file, "utf8"))).toHaveLength(14);
  const below = path.join(file, "rows.jsonl");
  const { status, stderr } = await callCli(["export", run, "--to", "csv", "--out", below]);
  expect(status).toBe(2);
  expect(stderr).toContain(`Cannot write ${below}: its folder cannot be made (EEXIST: `);
  expect(stderr).toContain("; choose another --out");
});

test("an exported file passes verify, and fails it at the exact place after a change", async () => {
  const file = path.join(scratch, "rows.json");
  expect(await callCli(["export", run, "--to", "skyrl", "--out", file])).toMatchObject({
    status: 0,
    stdout: "",
  });
  const sound = await callCli(["verify", file, "--as", "skyrl", "--run", run]);
  expect(jsonLines(sound.stdout)).toEqual([{ file, as: "skyrl", records: 15, violations: [] }]);
  expect(sound.status).toBe(0);
  const text = await readFile(file, "utf8");
  await writeFile(file, text.replace("-0.5", "0.5"));
  const broken = await callCli(["verify", file, "--as", "skyrl"]);
  expect(broken.status).toBe(1);
  expect(jsonLines(broken.stdout)).toMatchObject([
    {
      violations: [
        {
          line: 1,
          rule: "logprobs",
          detail: expect.stringMatching(/^rollout_logprobs\[0\] is 0.5/) as string,
        },
      ],
    },
  ]);
});

test("export adds a teacher's columns, and verify compares them with the run", async () => {
  const taught = path.join(scratch, "taught");
  await cp(run, taught, { recursive: true });
  await addTeacher(taught, { name: "large", topCount: 2 });
  const file = path.join(scratch, "taught.jsonl");
  const flags = ["--teacher", "large", "--teacher-top"];
  const { status, stderr } = await callCli([
    "export",
    taught,
    "--to",
    "verl",
    "--out",
    file,
    ...flags,
  ]);
  expect([status, stderr]).toEqual([0, expect.stringContaining("The columns of large for ")]);
  const sound = await callCli(["verify", file, "--as", "verl", "--run", taught, ...flags]);
  expect(jsonLines(sound.stdout)).toEqual([{ file, as: "verl", records: 14, violations: [] }]);
  const other = await callCli(["verify", file, "--as", "verl", "--run", taught]);
  expect(other.status).toBe(1);
});

test.each([
  [["export", "RUN", "--to", "slime", "--teacher-top"], "Cannot use --teacher-top without"],
  [["export", "RUN", "--to", "tinker", "--teacher-weight", "-1"], "expected a number of at least"],
  [["export", "RUN", "--to", "csv", "--teacher", "large"], "only trainers' forms have a teacher's"],
  [["export", "RUN", "--to", "slime", "--teacher", "large"], "has no teacher; turnwright score "],
  [["export", "/nowhere", "--to", "trl"], "Cannot read /nowhere/run.json: no such file"],
  [["export", "RUN", "--to", "word"], "argument 'word' is invalid"],
  [["export", "RUN"], "required option '--to <name>' not specified"],
  [["export", "RUN", "--to", "safetensors"], "name a folder by --out"],
  [["export", "RUN", "--to", "areal", "--policy-version", "x"], "expected a whole number"],
])("%j is refused", async (args, message) => {
  const { status, stderr } = await callCli(args.map((arg) => (arg === "RUN" ? run : arg)));
  expect(status).not.toBe(0);
  expect(stderr).toContain(message);
});

test("export assumes a run's temperature if run.json does not have it, for prime-rl alone", async () => {
  const untold = path.join(scratch, "untold");
  await cp(run, untold, { recursive: true });
  const text = await readFile(path.join(run, "run.json"), "utf8");
  const { found, ...manifest } = JSON.parse(text) as RunManifest;
  const { settings: _settings, ...rest } = found;
  await writeFile(path.join(untold, "run.json"), JSON.stringify({ ...manifest, found: rest }));
  const refused = await callCli(["export", untold, "--to", "prime-rl"]);
  expect([refused.status, refused.stderr]).toEqual([
    2,
    expect.stringContaining("; give it with --temperature T\n"),
  ]);
  const file = path.join(scratch, "prime-rl.jsonl");
  const warm = ["--temperature", "0.6"];
  await callCli(["export", untold, "--to", "prime-rl", "--out", file, ...warm]);
  const [row] = jsonLines(await readFile(file, "utf8")) as unknown as {
    readonly sample: { readonly temperatures: readonly number[] };
  }[];
  expect(new Set(row!.sample.temperatures)).toEqual(new Set([0.6]));
  const checked = await callCli(["verify", file, "--as", "prime-rl", "--run", untold, ...warm]);
  expect(jsonLines(checked.stdout)).toMatchObject([{ as: "prime-rl", violations: [] }]);
  const other = await callCli(["export", run, "--to", "verl", ...warm]);
  expect([other.status, other.stderr]).toEqual([
    2,
    expect.stringContaining("Cannot use --temperature with --to verl: only prime-rl's rows have"),
  ]);
});

import { spawnSync } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { callCli } from "../support/call-cli.ts";
import { jsonLines } from "../support/run-cli.ts";

const example = fileURLToPath(new URL("../../dist/examples/ai-sdk-agent.js", import.meta.url));
const modelDir = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

/** A package file as `npm init` writes it. */
const common = path.join(tmpdir(), `turnwright-common-${process.pid}`, "agent.js");

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-agent-"));
  await mkdir(path.dirname(common));
  await writeFile(path.join(path.dirname(common), "package.json"), '{"type": "commonjs"}');
  await writeFile(common, 'import "node:fs";\nexport async function run() {}\n');
});
afterAll(async () => {
  await rm(path.dirname(common), { recursive: true });
  await rm(scratch, { recursive: true });
});

const given = [
  "--env",
  "storefront",
  "--user",
  "scripted",
  "--tasks",
  "0",
  "--threads",
  "1",
  "--engine",
  "reference",
  "--model",
  modelDir,
  "--json",
  "--quiet",
];

test("`rollout --agent` plays the example with the shipped policy, and its rows pass verify", async () => {
  // A module is known by its files, wherever they lie.
  const file = path.join(scratch, "agent.mjs");
  const wrapped = `export { run } from ${JSON.stringify(example)};`;
  await writeFile(file, wrapped);
  const out = path.join(scratch, "run");
  const command = ["rollout", ...given, "--agent", file, "--out", out];
  const played = await callCli([...command, "--samples", "2"]);
  expect(played.status, played.stderr).toBe(0);
  const [first] = jsonLines(played.stdout);
  expect(first).toMatchObject({ type: "episode" });
  expect(["completed", "truncated"]).toContain(first!["outcome"]);
  const verified = await callCli(["verify", out, "--rescore"]);
  expect(verified.status, verified.stdout).toBe(0);
  expect(JSON.parse(verified.stdout)).toMatchObject({
    episodes: 2,
    planned: 2,
    isFinished: true,
    violations: [],
    rescore: { beyondToleranceCount: 0 },
  });

  await writeFile(file, `${wrapped}\nexport const changed = true;`);
  const changed = await callCli([...command, "--samples", "2"]);
  expect(changed.status).toBe(2);
  expect(changed.stderr).toContain("agentModule");
  const replayed = await callCli(["replay", out]);
  expect(replayed.status).toBe(2);
  expect(replayed.stderr).toContain("keeps its conversations itself");
});

const python = spawnSync("python3", ["--version"]).status === 0;

test.skipIf(!python)("`rollout --agent-command` plays the example in Python", async () => {
  const out = path.join(scratch, "python");
  const file = fileURLToPath(new URL("../../examples/agent.py", import.meta.url));
  const flags = ["--agent-command", `python3 ${JSON.stringify(file)}`, "--out", out];
  const played = await callCli(["rollout", ...given, ...flags]);
  expect(played.status, played.stderr).toBe(0);
  expect(jsonLines(played.stdout)[0]).toMatchObject({ type: "episode", outcome: "completed" });
  const verified = await callCli(["verify", out]);
  expect(JSON.parse(verified.stdout)).toMatchObject({ episodes: 1, samples: 1, violations: [] });
});
if (!python) console.warn("The example in Python is skipped: python3 is not here.");

test("`eval --agent-command` reports on a program, and shows its output when it fails", async () => {
  const out = path.join(scratch, "eval");
  const command = 'node -e "console.error(`no agent here`); process.exit(4)"';
  const flags = ["--agent-command", command, "--attempts", "1", "--out", out];
  const { status, stdout } = await callCli(["eval", ...given, ...flags]);
  expect(status).toBe(1);
  const [episode] = jsonLines(stdout);
  expect(episode).toMatchObject({
    type: "episode",
    outcome: "failed",
    failure: {
      party: "agent",
      code: "agent/exit",
      message: expect.stringContaining("no agent here"),
    },
  });
});

test.each<[string, readonly string[], string]>([
  ["a name that there is not", ["--agent", "acting"], "expected one of tool-calling, act, react"],
  ["a module that there is not", ["--agent", "./absent.js"], "Cannot find agent ./absent.js"],
  ["a module by a name that makes it none", ["--agent", common], "name it .mjs or put"],
  [
    "two agents",
    ["--agent", "./a.js", "--agent-command", "b"],
    "Cannot use --agent with --agent-command",
  ],
  [
    "settings of a built-in agent",
    ["--agent", "./a.js", "--tool-use", "one"],
    "Cannot use --tool-use with --agent with a module",
  ],
  ["an empty command", ["--agent-command", " "], "it is empty"],
])("`rollout` refuses %s", async (_, flags, message) => {
  const { status, stderr } = await callCli(["rollout", ...given, ...flags]);
  expect(status).toBe(2);
  expect(stderr).toContain(message);
});

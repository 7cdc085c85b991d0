import { mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startSglangTestServer, createTextPolicy } from "../../src/testing/index.ts";
import { smallModelFolder } from "../support/small-model.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines } from "../support/run-cli.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** An environment whose first task leaves a resource that cannot be disposed of. */
const source = `
import { defineEnvironment } from "turnwright";
export default defineEnvironment({
  name: "leaky",
  tasks: [{ instruction: "Hello.", gone: true }, { instruction: "Hello.", gone: false }],
  policy: "Answer.",
  tools: [],
  repeatable: true,
  dispose(_, { gone }) { if (gone) throw new Error("the container is gone"); },
  score: () => 1,
});
`;

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-disposal-"));
  await symlink(path.join(root, "node_modules"), path.join(scratch, "node_modules"));
  await writeFile(path.join(scratch, "leaky.mjs"), source.replace('"turnwright"', `"${library}"`));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

const library = new URL("../../dist/src/index.js", import.meta.url).href;
const failure =
  "dispose() of leaky (leaky.mjs:3) threw for task leaky/test/0 at leaky.mjs:9: the container is gone";

test("a failed disposal is reported by the summary, by `show`, by `eval`, and in every row, and fails no episode", async () => {
  await using server = await startSglangTestServer({
    policy: await createTextPolicy(["Hello."], { modelDir: smallModelFolder }),
  });
  const out = path.join(scratch, "run");
  const flags = [
    "--env",
    path.join(scratch, "leaky.mjs"),
    "--user",
    "scripted",
    "--url",
    server.url,
    "--model",
    smallModelFolder,
  ];
  const line = "  troubles   environment/exception ×2; no episode was lost to them\n";
  const sums = {
    outcomes: { completed: 4, truncated: 0, failed: 0 },
    troubles: { "environment/exception": 2 },
    scored: 4,
  };
  // The second start plays nothing, and reports the first one's troubles.
  for (const _ of ["first", "second"]) {
    const played = await callCli(["rollout", ...flags, "--samples", "2", "--out", out, "--quiet"]);
    expect(played).toMatchObject({ status: 0, stderr: "" });
    expect(played.stdout).toContain(line);
    const first = played.stdout.split("\n").find((line) => line.startsWith("  the first"));
    // The order of the ends does not matter.
    expect(first?.replace("0#1", "0#0")).toBe(`  the first  leaky/test/0#0: ${failure}`);
    const summary = JSON.parse(await readFile(path.join(out, "summary.json"), "utf8")) as object;
    expect(summary).toMatchObject(sums);
  }
  const shown = await callCli(["show", out, "0#1"]);
  expect(shown.stdout).toContain(
    `\ntrouble that cost it nothing: environment/exception: ${failure}\n`,
  );
  expect((await callCli(["show", out, "1#1"])).stdout).not.toContain("trouble");
  const events = jsonLines(await readFile(path.join(out, "events.jsonl"), "utf8"));
  expect(events.filter(({ type }) => type === "trouble")).toHaveLength(2);
  // The written files agree with each other, and are replayed to the byte.
  expect(await callCli(["verify", out])).toMatchObject({ status: 0 });
  const replayed = await callCli(["replay", out]);
  expect(replayed, replayed.stderr).toMatchObject({ status: 0 });

  const evaluated = await callCli(["eval", ...flags, "--out", path.join(scratch, "eval")]);
  expect(evaluated.stderr).toContain(
    `note: troubles that no episode was lost to: environment/exception ×1; the first: leaky/test/0#0: ${failure}`,
  );
});

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { EpisodeRow } from "../../src/run/folder/run-folder.ts";
import { conductSettings } from "../../src/composition/config/conduct-config.ts";
import { startSglangTestServer } from "../../src/testing/index.ts";
import type { ServerFault } from "../../src/testing/protocol-servers/server-fault.ts";
import { createTextPolicy } from "../../src/testing/policies/text-policy.ts";
import { callCli } from "../support/call-cli.ts";
import { jsonLines } from "../support/run-cli.ts";
import { smallModelFolder } from "../support/small-model.ts";

let scratch = "";
let run = "";

async function startServer(faults: readonly ServerFault[] = []) {
  const policy = await createTextPolicy(["Hello!", "And you?", "Bye."], {
    modelDir: smallModelFolder,
  });
  return await startSglangTestServer({ policy, faults });
}

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-fork-settings-"));
  run = path.join(scratch, "run");
  await using server = await startServer();
  await callCli([
    "rollout",
    "--split",
    "test",
    "--env",
    "storefront",
    "--engine",
    "sglang",
    "--url",
    server.url,
    "--model",
    smallModelFolder,
    "--user",
    "scripted",
    "--tasks",
    "0",
    "--samples",
    "1",
    // The run's own settings do not apply to a fork.
    "--max-turns",
    "3",
    "--retry-failed",
    "--quiet",
    "--out",
    run,
  ]);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** The outcomes of a fork's branches, by their names. */
async function outcomes(dir: string): Promise<readonly string[]> {
  const text = await readFile(path.join(dir, "episodes.jsonl"), "utf8");
  const rows = jsonLines(text) as unknown as EpisodeRow[];
  return rows.map(({ rolloutId, outcome }) => `${rolloutId} ${outcome}`).toSorted();
}

test("a fork has exactly those settings of how a run is carried out that it heeds", async () => {
  const { stdout } = await callCli(["fork", "--help"]);
  const offered = conductSettings.filter(({ name }) => stdout.includes(`--${name} `));
  expect(offered.map(({ name }) => name)).toEqual([
    "concurrency",
    "follow-load",
    "attempts",
    "max-failures",
    "out",
    "format",
    "retry-failed",
  ]);
});

test("a fork stops at consecutive failures, and plays failed branches again on request", async () => {
  const dir = path.join(scratch, "fork");
  const refusal = { kind: "status", status: 400, body: { error: { message: "bad" } } } as const;
  await using server = await startServer(Array.from({ length: 2 }, () => refusal));
  const fork = async (...more: string[]) =>
    await callCli([
      "fork",
      run,
      "0#0",
      "--turn",
      "0",
      "--samples",
      "3",
      "--out",
      dir,
      "--seed",
      "5",
      "--url",
      server.url,
      "--attempts",
      "1",
      "--concurrency",
      "1",
      ...more,
    ]);
  const [one, two, three] = [0, 1, 2].map((index) => `storefront/test/0#0@0.5#${index}`);

  const stopped = await fork("--max-failures", "2");
  expect(stopped).toMatchObject({ status: 1 });
  expect(stopped.stdout).toContain("The run stopped: too many episodes failed in a row.");
  expect(await outcomes(dir)).toEqual([`${one} failed`, `${two} failed`]);

  // Failed branches are as final as finished ones, for any settings of the run itself.
  expect(await fork()).toMatchObject({ status: 0 });
  expect(await outcomes(dir)).toEqual([`${one} failed`, `${two} failed`, `${three} completed`]);

  const mended = await fork("--retry-failed");
  expect(mended).toMatchObject({ status: 0 });
  expect(mended.stdout).toContain("3 of 3: 3 completed, 0 truncated, 0 failed");
  expect(await outcomes(dir)).toEqual([one, two, three].map((id) => `${id} completed`));
  expect(JSON.parse((await callCli(["verify", dir])).stdout)).toMatchObject({ violations: [] });
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { UsageError } from "../errors.ts";
import { startRunViewer } from "./start-run-viewer.ts";
import { writeViewedRun } from "./viewed-run.fixture.ts";

let dir = "";
beforeEach(async () => {
  dir = await mkdtemp(path.join(tmpdir(), "turnwright-viewer-"));
});
afterEach(async () => {
  await rm(dir, { recursive: true });
});

test("serves the runs of some folders until it is disposed of", async () => {
  await writeViewedRun(path.join(dir, "first"), []);
  let url = "";
  {
    await using viewer = await startRunViewer([path.join(dir, "first")]);
    ({ url } = viewer);
    expect((await fetch(url)).status).toBe(200);
  }
  await expect(fetch(url)).rejects.toThrow("fetch failed");
});

test("refuses a folder without a run", async () => {
  await expect(startRunViewer([path.join(dir, "absent")])).rejects.toThrow(UsageError);
});

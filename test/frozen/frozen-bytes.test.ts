import { createHash } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { frozenRuns, type RunBytes } from "./frozen-runs.ts";
import { stillProcess } from "./still-process.ts";

/**
 * Seeded runs give the bytes that they gave before. `FROZEN_BYTES=update` writes the hashes of this build, and
 * `FROZEN_BYTES=FOLDER` writes the bytes themselves, to compare those of two builds.
 */
const { FROZEN_BYTES: wish } = process.env;

const file = new URL("frozen-bytes.json", import.meta.url);
const known = JSON.parse(await readFile(file, "utf8")) as Record<string, Record<string, string>>;
const seen: Record<string, Record<string, string>> = {};

afterAll(async () => {
  if (wish === "update")
    await writeFile(file, `${JSON.stringify({ ...known, ...seen }, undefined, 2)}\n`);
});

describe("frozen bytes", () => {
  test.each(Object.entries(frozenRuns))("%s", async (name, play) => {
    using _still = stillProcess();
    const scratch = await mkdtemp(path.join(tmpdir(), "turnwright-frozen-"));
    try {
      const bytes = await play(scratch);
      seen[name] = Object.fromEntries(
        Object.entries(bytes).map(([what, text]) => [what, hashOf(text)]),
      );
      if (wish === "update") return;
      if (wish !== undefined) await writeBytes(path.join(wish, name), bytes);
      expect(seen[name]).toEqual(known[name]);
    } finally {
      await rm(scratch, { recursive: true });
    }
  });
});

function hashOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

async function writeBytes(folder: string, bytes: RunBytes): Promise<void> {
  await mkdir(folder, { recursive: true });
  for (const [what, text] of Object.entries(bytes)) {
    await writeFile(path.join(folder, what.replaceAll(" ", "-")), text);
  }
}

import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { expect, test } from "vitest";
import { openSharedFolder } from "../place/shared-folder.ts";
import { PayloadError, takePayload } from "./payload.ts";

test("an unreadable payload counts as absent, and is fetched again", async () => {
  const dir = await mkdtemp(path.join(tmpdir(), "turnwright-payload-"));
  try {
    const place = await openSharedFolder(dir);
    await mkdir(path.join(dir, "results"));
    const payload = { by: "shared", name: "results", bytes: 1, sha256: "0".repeat(64) } as const;
    const waits: number[] = [];
    const clock = { sleep: async (ms: number) => void waits.push(ms) };
    const taken = takePayload(payload, place, clock);
    await expect(taken).rejects.toThrow(PayloadError);
    await expect(taken).rejects.toThrow(/^results in the shared place .* cannot be read: EISDIR/);
    expect(waits).toHaveLength(5);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});

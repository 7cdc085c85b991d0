import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { readRunConfig } from "../composition/config/run-config.ts";
import { playRun } from "./play-run.ts";

const model = fileURLToPath(new URL("../../models/storefront-2m", import.meta.url));

let scratch = "";
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-play-run-"));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

/** The text written to standard error during the run. */
async function captured(play: (soFar: () => string) => Promise<void>): Promise<string> {
  let text = "";
  const write = vi.spyOn(process.stderr, "write").mockImplementation((chunk) => {
    text += String(chunk);
    return true;
  });
  try {
    await play(() => text);
  } finally {
    write.mockRestore();
  }
  return text;
}

function configOf(name: string) {
  return readRunConfig({
    env: "storefront",
    user: "scripted",
    engine: "reference",
    threads: 1,
    sequences: 2,
    model,
    tasks: "0",
    "max-tokens-per-turn": 16,
    "max-turns": 1,
    "sampling-seed": 3,
    out: path.join(scratch, name),
  });
}

describe("playRun()", () => {
  test("with `view` serves the run until it has ended", async () => {
    let address = "";
    await captured(async (soFar) => {
      const display = { json: false, quiet: true, view: true };
      await playRun(configOf("viewed"), display, async ({ result }) => {
        expect(result.end).toBe("finished");
        address = /http:\/\/127\.0\.0\.1:\d+\S*/.exec(soFar())?.[0] ?? "";
        const page = await fetch(address);
        expect(page.status).toBe(200);
        expect(await page.text()).toContain("<html");
      });
    });
    await expect(fetch(address)).rejects.toThrow();
  });

  test("serves metrics while it plays, and no longer", async () => {
    const text = await captured(async () => {
      const display = { json: false, quiet: true, metricsPort: 0 };
      await playRun(configOf("measured"), display, async ({ result }) => {
        expect(result.end).toBe("finished");
      });
    });
    const address = /metrics: (http:\/\/127\.0\.0\.1:\d+\/metrics)\n/.exec(text)?.[1] ?? "";
    expect(address).not.toBe("");
    await expect(fetch(address)).rejects.toThrow();
  });
});

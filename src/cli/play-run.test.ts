import { mkdtemp, rm, writeFile } from "node:fs/promises";
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

function configOf(name: string, more: object = {}) {
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
    ...more,
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

  test("notes the tools that an external agent's policy was not shown", async () => {
    const agent = path.join(scratch, "agent.mjs");
    await writeFile(
      agent,
      `export async function run({ baseUrl, apiKey, fetch }) {
        const tools = [{ type: "web_search_20250305", name: "web_search" }];
        const messages = [{ role: "user", content: "Hello." }];
        await fetch(baseUrl + "/v1/messages", {
          method: "POST",
          headers: { "x-api-key": apiKey },
          body: JSON.stringify({ model: "policy", max_tokens: 4, tools, messages }),
        });
      }`,
    );
    const config = configOf("noted", { agent });
    const text = await captured(async () => {
      await playRun(config, { json: false, quiet: false }, async () => {});
    });
    expect(text.split("\n")).toContain(
      "note: requests gave tools of a server, which the policy was not shown: web_search_20250305 1",
    );
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

import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { pathToFileURL } from "node:url";
import { gzipSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadTokenCodec } from "../../src/tokenizer/load-codec.ts";
import { addColumns, writeViewedColumns } from "../../src/viewer/viewed-columns.fixture.ts";
import { makeSeveralRows } from "../../src/viewer/several-rows.fixture.ts";
import {
  makeEpisode,
  makeSample,
  viewedModel,
  writeViewedRun,
  type ViewedEpisode,
} from "../../src/viewer/viewed-run.fixture.ts";
import { exportHtml } from "../../src/viewer/export-html.ts";
import { openRuns } from "../../src/viewer/source/run-catalog.ts";
import { callCli } from "../support/call-cli.ts";
import { cliFile } from "../support/run-cli.ts";
import { builtPage, hasBrowser, launchBrowser, serveRuns, watchPage } from "./browser.ts";

let scratch = "";
let run = "";
let episodes: readonly ViewedEpisode[] = [];
beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), "turnwright-export-"));
  run = path.join(scratch, "run");
  const codec = await loadTokenCodec(viewedModel);
  episodes = await Promise.all(
    ["shop/test/0#0", "shop/test/0#1", "shop/test/7#3"].map(async (id) => ({
      row: makeEpisode(id, [{ text: "</script><!-- Good morning." }]),
      samples: [
        await makeSample(codec, id, [
          { text: "<|im_start|>user\nHello.<|im_end|>\n" },
          { text: "</script><!-- Good morning.<|im_end|>", version: "7" },
        ]),
      ],
    })),
  );
  await codec.close?.();
  await writeViewedRun(run, episodes);
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

describe("turnwright view --export", () => {
  test("--success-threshold judges the episodes of the file", async () => {
    const file = path.join(scratch, "judged.html");
    const args = ["view", run, "--export", file, "--episode", "0#1", "--success-threshold"];
    expect((await callCli([...args, "high"])).stderr).toContain("expected a number");
    expect((await callCli([...args, "-5"])).stdout).toMatch(
      /judged\.html: 1 episode, \d+ bytes\n$/,
    );
    const html = await readFile(file, "utf8");
    expect(html).toContain('"successThreshold":-5');
    expect(html).toContain('"success":true');
  });

  test("writes a file that needs only a browser", async (context) => {
    const file = path.join(scratch, "exported.html");
    const { status, stdout, stderr } = await callCli([
      "view",
      run,
      "--export",
      file,
      "--episode",
      "0#1",
      "7#3",
      "0#1",
    ]);
    expect(stderr).toBe("");
    expect(status).toBe(0);
    expect(stdout).toMatch(/exported\.html: 2 episodes, \d+ bytes\n$/);
    if (!hasBrowser) {
      context.skip();
      return;
    }
    const browser: Browser = await launchBrowser();
    try {
      await using watched = await watchPage(browser);
      const { page, complaints, requests } = watched;
      const address = pathToFileURL(file).href;
      await page.goto(address);
      await page.locator(".list-row").nth(1).waitFor();
      expect(await page.locator(".list-row").count()).toBe(2);
      await page.locator('[data-episode="shop/test/7#3"]').click();
      const sample = episodes[2]!.samples[0]!;
      const { start } = sample.turns[0]!;
      await page.locator(`[data-token="${start}"]`).click();
      expect(await page.locator('[data-field="logprob"]').getAttribute("title")).toBe(
        String(sample.logprobs[start]),
      );
      expect(await page.locator(".turn .text").innerText()).toBe("</script><!-- Good morning.");
      await page.keyboard.press("c");
      await page.locator(".notice").getByText("copied turn 0's text").waitFor();
      await page.keyboard.press("/");
      await page.keyboard.press("Control+v");
      expect(await page.locator(".token-search").inputValue()).toBe(
        "</script><!-- Good morning.<|im_end|>",
      );
      // The address leads back to the token, also from a file.
      const link = page.url();
      await page.goto("about:blank");
      await page.goto(link);
      await page.locator(`.token.selected[data-token="${start}"]`).waitFor();
      expect(complaints).toEqual([]);
      const others = requests.filter(
        (url) => !url.startsWith(address) && !/^(?:data|about):/.test(url),
      );
      expect(others).toEqual([]);
    } finally {
      await browser.close();
    }
  });

  test("names the side columns of a row, and says that their values are not in the file", async (context) => {
    const dir = path.join(scratch, "columns");
    const { row, samples } = episodes[0]!;
    const { sample, parts } = addColumns(samples[0]!);
    await writeViewedRun(dir, [{ row, samples: [sample] }]);
    await writeViewedColumns(dir, parts);
    const { html } = await exportHtml((await openRuns([dir])).runs[0]!, { wanted: [] });
    if (!hasBrowser) {
      context.skip();
      return;
    }
    const file = path.join(scratch, "columns.html");
    await writeFile(file, html);
    const browser: Browser = await launchBrowser();
    try {
      await using watched = await watchPage(browser);
      const { page, complaints } = watched;
      await page.goto(pathToFileURL(file).href);
      await page.locator(".list-row").click();
      await page.locator(".side-columns [data-field=no-bytes]").waitFor();
      expect(await page.locator(".side-columns [data-field=no-bytes]").innerText()).toBe(
        "their values are not in this file: they are in the run's folder",
      );
      const heads = await page.locator(".side-columns [data-column]").allInnerTexts();
      expect(heads.map((head) => head.split(" ").slice(0, 2).join(" "))).toEqual([
        "routed experts",
        "kept tokens",
        "top logprobs",
        "indexer positions",
      ]);
      expect(await page.locator(".side-columns button").count()).toBe(0);
      expect(complaints).toEqual([]);
    } finally {
      await browser.close();
    }
  });

  test("keeps the roles and origins of rows", async (context) => {
    const several = path.join(scratch, "several");
    const codec = await loadTokenCodec(viewedModel);
    await writeViewedRun(several, [await makeSeveralRows(codec, "shop/test/0#0")]);
    await codec.close?.();
    const { html } = await exportHtml((await openRuns([several])).runs[0]!, { wanted: [] });
    if (!hasBrowser) {
      context.skip();
      return;
    }
    const file = path.join(scratch, "several.html");
    await writeFile(file, html);
    const browser: Browser = await launchBrowser();
    try {
      await using watched = await watchPage(browser);
      const { page } = watched;
      await page.goto(pathToFileURL(file).href);
      await page.locator(".list-row").click();
      await page.locator(".tree [data-role]").nth(3).waitFor();
      expect(await page.locator(".tree .origin").allInnerTexts()).toEqual([
        "called by turn 0 of row 0",
        "asked for a summary after turn 1 of row 0",
        "after compaction by turn 3 of row 2",
      ]);
    } finally {
      await browser.close();
    }
  });

  test("writes all episodes if none is named", async () => {
    const file = path.join(scratch, "all.html");
    const { stdout } = await callCli(["view", run, "--export", file]);
    expect(stdout).toContain(": 3 episodes, ");
    const [, policy] = /Content-Security-Policy" content="([^"]+)"/.exec(
      await readFile(file, "utf8"),
    )!;
    expect(policy).toMatch(
      /^default-src 'none'; script-src 'sha256-[\w+/]+=*'; style-src 'sha256-[\w+/]+=*'; img-src data:; base-uri 'none'; form-action 'none'$/,
    );
  });
});

test("an exported episode is as stale as it was in its run, and is opened", async () => {
  const dir = path.join(scratch, "stale");
  const codec = await loadTokenCodec(viewedModel);
  const sampledBy = async (id: string, version: string): Promise<ViewedEpisode> => ({
    row: makeEpisode(id, [{ text: "Hello." }]),
    samples: [await makeSample(codec, id, [{ text: "Hi." }, { text: "Hello.", version }])],
  });
  await writeViewedRun(dir, [
    await sampledBy("shop/test/0#0", "9"),
    await sampledBy("shop/test/0#1", "4"),
  ]);
  await codec.close?.();
  const [run] = (await openRuns([dir])).runs;
  const { html } = await exportHtml(run!, { wanted: ["0#1"] });
  expect(html).toContain('"staleness":5');
  expect(html).toContain('"opens":"shop/test/0#1"');
  expect((await exportHtml(run!, { wanted: [] })).html).not.toContain('"opens":');
});

describe("turnwright view", () => {
  test("prints the page's address, serves it, and ends on request", async () => {
    const child = spawn(process.execPath, [cliFile, "view", run, "--port", "0"]);
    const [address] = (await once(child.stdout, "data")) as [Buffer];
    expect(address.toString()).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/\n$/);
    const runs = await (await fetch(`${address.toString().trim()}api/runs`)).json();
    expect(runs).toMatchObject({
      runs: [{ facts: { key: "run", state: "finished", episodeCount: 3 } }],
      unreadable: [],
    });
    child.kill("SIGINT");
    expect(await once(child, "close")).toEqual([0, null]);
  });

  test.each<[readonly string[], RegExp]>([
    [["view", "nowhere"], /Cannot read nowhere\/run\.json: no such file, expected a run's folder/],
    [["view", "RUN", "--port", "x"], /Cannot use --port x: expected a whole number up to 65535/],
    [["view", "RUN", "--episode", "0#0"], /Cannot use --episode without --export/],
    [["view", "RUN", "RUN", "--export", "x"], /Cannot export several runs into one file/],
    [
      ["view", "RUN", "--export", "x", "--episode", "9#9"],
      /Cannot export episode 9#9 of \S+: no finished episode has this id/,
    ],
    [
      ["view", "RUN", "--export", "x", "--episode", "shop/test/0"],
      /Cannot export episode shop\/test\/0 of \S+: 2 episodes fit/,
    ],
  ])("refuses %j", async (args, complaint) => {
    const { status, stderr } = await callCli(args.map((arg) => (arg === "RUN" ? run : arg)));
    expect(stderr).toMatch(complaint);
    expect(status).toBe(2);
  });

  test("answers reads of this machine's own pages only", async () => {
    await using server = await serveRuns(run);
    const page = await fetch(server.url);
    expect(page.status).toBe(200);
    expect(page.headers.get("content-security-policy")).toContain("default-src 'none'");
    expect(page.headers.get("access-control-allow-origin")).toBeNull();
    const { request } = await import("node:http");
    const status = await new Promise((resolve, reject) => {
      request(server.url, { headers: { host: "evil.example:80" } }, (response) =>
        resolve(response.statusCode),
      )
        .on("error", reject)
        .end();
    });
    expect(status).toBe(403);
    const posted = await fetch(`${server.url}api/runs`, { method: "POST" });
    expect(posted.status).toBe(404);
    const outside = await fetch(`${server.url}..%2f..%2frun.json`);
    expect(outside.status).toBe(404);
    const unknown = await fetch(`${server.url}api/runs/other/episodes`);
    expect(unknown.status).toBe(422);
    expect(await unknown.json()).toEqual({
      error: "Cannot find run other: it is not being viewed",
    });
  });

  test("returns a row unchanged from the file, and finds texts in conversations", async () => {
    await using server = await serveRuns(run);
    const id = encodeURIComponent("shop/test/7#3");
    const row = await fetch(`${server.url}api/runs/run/row?id=${id}&as=line`);
    expect(await row.text()).toBe(JSON.stringify(episodes[2]!.samples[0]));
    const search = async (text: string) =>
      await (
        await fetch(`${server.url}api/runs/run/search?text=${encodeURIComponent(text)}`)
      ).json();
    expect(await search("Good morning")).toEqual({
      "shop/test/0#0": 1,
      "shop/test/0#1": 1,
      "shop/test/7#3": 1,
    });
    expect(await search("good MORNING")).toEqual(await search("Good morning"));
    // Ids and the names of members are not said.
    expect(await search("rolloutId")).toEqual({});
    expect(await search("")).toEqual({});
    const versions = await fetch(`${server.url}api/runs/run/versions`);
    expect(await versions.json()).toMatchObject({ "shop/test/7#3": ["7"] });
  });

  test("counts unreadable lines, and shows the others", async () => {
    const dir = path.join(scratch, "torn");
    await writeViewedRun(dir, episodes, { isFinished: false });
    const file = path.join(dir, "episodes.jsonl");
    const [first, second, third] = (await readFile(file, "utf8")).split("\n");
    await writeFile(file, [first, second!.slice(0, 40), third, third!.slice(0, 90)].join("\n"));
    await using server = await serveRuns(dir);
    const answer = await fetch(`${server.url}api/runs/torn/episodes`);
    const { facts, entries } = (await answer.json()) as {
      facts: object;
      entries: readonly { order: number; rolloutId: string }[];
    };
    expect(facts).toMatchObject({ state: "stopped", episodeCount: 2, damagedCount: 1 });
    expect(entries.map(({ order, rolloutId }) => [order, rolloutId])).toEqual([
      [0, "shop/test/0#0"],
      [1, "shop/test/7#3"],
    ]);
  });

  test("ships a page of at most 60 kB, compressed", async () => {
    const parts = await Promise.all(
      ["viewer.js", "viewer.css"].map((name) => readFile(new URL(name, builtPage))),
    );
    const size = parts.reduce((sum, bytes) => sum + gzipSync(bytes).length, 0);
    expect(size).toBeLessThan(60_000);
    expect(size).toBeGreaterThan(10_000);
  });
});

import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { EpisodeRow } from "../../src/run/folder/episode-row.ts";
import { loadTokenCodec } from "../../src/tokenizer/load-codec.ts";
import type { TokenCodec } from "../../src/tokenizer/codec.ts";
import { linkTo } from "../../src/viewer/model/route.ts";
import {
  appendSampled,
  makeEpisode,
  makeSample,
  markRecording,
  viewedModel,
  writeViewedRun,
  type ViewedEpisode,
} from "../../src/viewer/viewed-run.fixture.ts";
import { hasBrowser, launchBrowser, serveRuns, watchPage } from "./browser.ts";

describe.skipIf(!hasBrowser)("turnwright view: links between runs", () => {
  let scratch = "";
  let browser: Browser;
  let codec: TokenCodec;
  beforeAll(async () => {
    scratch = await mkdtemp(path.join(tmpdir(), "turnwright-hand-on-"));
    codec = await loadTokenCodec(viewedModel);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await codec?.close?.();
    await rm(scratch, { recursive: true });
  });

  const hostile = 'Good </b> \u202Emorning.\n<|im_end|> "\u0007';

  async function episode(
    id: string,
    words: string,
    more: Partial<EpisodeRow> = {},
  ): Promise<ViewedEpisode> {
    const samples = [
      await makeSample(codec, id, [
        { text: "<|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\n" },
        { text: `${words}<|im_end|>`, version: "7" },
        { text: "\n<|im_start|>user\nAnd?<|im_end|>\n<|im_start|>assistant\n" },
        { text: "Bye.<|im_end|>", version: "7" },
      ]),
    ];
    return { row: makeEpisode(id, [{ text: words }, { text: "Bye." }], more), samples };
  }

  async function press(page: Page, ...keys: readonly string[]): Promise<void> {
    for (const key of keys) await page.keyboard.press(key);
  }

  test("copies a turn's text and ids as they were recorded, and saves the row's line", async () => {
    const dir = path.join(scratch, "copies", "run");
    const made = await episode("shop/test/0#0", hostile);
    await writeViewedRun(dir, [made, await episode("shop/test/0#1", "Other.")]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser, {
      permissions: ["clipboard-read", "clipboard-write"],
    });
    const { page, complaints } = watched;
    await page.goto(
      server.url +
        linkTo({ page: "episode", run: "run", episode: "shop/test/0#0", row: 0, mode: "mask" }),
    );
    await page.locator(".token").first().waitFor();
    const copied = async (what: string) => {
      await page.locator(".notice").getByText(`copied ${what}`, { exact: true }).waitFor();
      return await page.evaluate(() => navigator.clipboard.readText());
    };
    const sample = made.samples[0]!;
    await press(page, "i");
    expect(await copied("the row's ids")).toBe(sample.tokenIds.join(" "));
    const { start, end } = sample.turns[0]!;
    await press(page, "j", "c");
    expect(await copied("turn 0's text")).toBe(`${hostile}<|im_end|>`);
    await page.getByRole("button", { name: "copy ids" }).click();
    expect(await copied("turn 0's ids")).toBe(sample.tokenIds.slice(start, end).join(" "));
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "download the row" }).click(),
    ]);
    expect(download.suggestedFilename()).toBe("shop_test_0#0.0.json");
    const saved = await readFile(await download.path(), "utf8");
    expect(saved).toBe(JSON.stringify(sample));
    expect(complaints).toEqual([]);
  });

  test("keeps a search to the run that was searched, and in its field", async () => {
    const [left, right] = ["left", "right"].map((name) => path.join(scratch, "search", name));
    await writeViewedRun(left!, [
      await episode("shop/test/0#0", "needle"),
      await episode("shop/test/1#0", "hay"),
    ]);
    await writeViewedRun(right!, [await episode("shop/test/2#0", "hay")]);
    await using server = await serveRuns(left!, right!);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(`${server.url}#/run/left`);
    const field = page.getByRole("searchbox", { name: "search all conversations" });
    await field.fill("NEEDLE");
    await field.press("Enter");
    await page.locator(".shown-count").getByText("1 of 2").waitFor();
    await page.locator(".search-count").getByText("in 1 episode").waitFor();
    await page.locator(".list-row").click();
    await page.locator(".verdict").waitFor();
    expect(await page.locator(".conversation mark").allInnerTexts()).toContain("needle");
    await page.locator(".token.match").first().waitFor();
    await press(page, "Escape");
    await page.locator(".shown-count").getByText("1 of 2").waitFor();
    expect(await field.inputValue()).toBe("NEEDLE");
    await page.goto(`${server.url}#/run/right`);
    await page.locator(".shown-count").getByText("1 of 1").waitFor();
    expect(await field.inputValue()).toBe("");
  });

  test("compares with the attempt of that number, also if another is missing", async () => {
    const dir = path.join(scratch, "missing", "run");
    await writeViewedRun(
      dir,
      [
        await episode("shop/test/0#1", "one"),
        await episode("shop/test/0#2", "two"),
        await episode("shop/test/0#3", "three"),
      ],
      { isFinished: false },
    );
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(
      server.url +
        linkTo({ page: "episode", run: "run", episode: "shop/test/0#1", row: 0, mode: "mask" }),
    );
    await page.locator(".attempts").getByText("side by side").click();
    await page.locator(".group-head").getByText("Compared with attempt #1").waitFor();
    await page.getByRole("button", { name: "#3" }).click();
    await page.locator(".group-head").getByText("Compared with attempt #3").waitFor();
  });

  test("links a fork to its original only if that is in the same run", async () => {
    const dir = path.join(scratch, "fork", "run");
    const forkedFrom = { rolloutId: "shop/test/0#1", turnIndex: 1 };
    await writeViewedRun(dir, [
      await episode("shop/test/0#0", "one", { forkedFrom }),
      await episode("shop/test/0#1", "two"),
    ]);
    const other = path.join(scratch, "fork", "other");
    // `turnwright fork` numbers its branches from 0: one of them has the name of its original.
    await writeViewedRun(other, [
      await episode("shop/test/0#0", "one", { forkedFrom }),
      await episode("shop/test/0#1", "two", { forkedFrom }),
    ]);
    const manifestFile = path.join(other, "run.json");
    const manifest = JSON.parse(await readFile(manifestFile, "utf8")) as Record<string, object>;
    const configuration = { ...manifest["configuration"], forkedFrom };
    await writeFile(manifestFile, JSON.stringify({ ...manifest, configuration }));
    await using server = await serveRuns(dir, other);
    await using watched = await watchPage(browser);
    const { page } = watched;
    const show = async (run: string) => {
      const place = { page: "episode", run, episode: "shop/test/0#0", row: 0 } as const;
      await page.goto(server.url + linkTo({ ...place, mode: "mask" }));
      await page.locator(".attempts a").first().waitFor();
      await page.locator(".breadcrumbs").getByText(run, { exact: true }).waitFor();
    };
    await show("run");
    expect(await page.locator(".fork-note a").innerText()).toBe("shop/test/0#1");
    await show("other");
    const note = page.locator(".fork-note");
    await note.getByText("shop/test/0#1 of the run that it was forked from").waitFor();
    expect(await note.locator("a").count()).toBe(0);
    await press(page, "g");
    await page.locator(".forked").nth(1).waitFor();
    expect(await page.locator(".forked").allInnerTexts()).toEqual([
      "⑂ forked from shop/test/0#1 of another run at turn 1; what is before it is trained there",
      "⑂ forked from shop/test/0#1 of another run at turn 1; what is before it is trained there",
    ]);
    expect(await page.locator(".forked a").count()).toBe(0);
  });

  test("shows the recorded part of a killed run's unfinished episodes", async () => {
    const dir = path.join(scratch, "killed", "run");
    await writeViewedRun(dir, [], { planned: 2, isFinished: false });
    const id = "shop/test/0#0";
    await markRecording(dir, id, "begin");
    const ids = await codec.encode("Good morning.<|im_end|>");
    await appendSampled(dir, id, { ids, version: "7", answer: "fine" });
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page, complaints } = watched;
    await page.goto(server.url);
    await page.locator(".state-stopped").waitFor();
    await page.getByText("1 not finished:").waitFor();
    await page.locator(`[data-running="${id}"]`).click();
    await page.getByText("Not finished: 1 turn was recorded").waitFor();
    await page.locator(`[data-token="${ids.length - 1}"]`).waitFor();
    expect(await page.locator(".turn .said-tool .text").innerText()).toBe("fine");
    // None of its tokens are trained, and the page promises no further ones.
    await page.locator(".legend").getByText("there is no training row").waitFor();
    expect(await page.locator(".legend .trained").count()).toBe(0);
    await press(page, "j");
    expect(await page.locator('[data-field="mask"]').innerText()).toBe("none");
    expect(complaints).toEqual([]);
  });

  test("walks by keys through the turns of all rows, and covers no chosen token", async () => {
    const dir = path.join(scratch, "rows", "run");
    const id = "shop/test/0#0";
    const parts = (words: string, count: number) =>
      Array.from({ length: count }, (_, index) => [
        { text: `<|im_start|>user\n${words} ${index}.<|im_end|>\n` },
        { text: `${words} indeed.<|im_end|>`, version: "7" },
      ]).flat();
    const first = await makeSample(codec, id, parts("Hello", 20));
    const second = await makeSample(codec, id, parts("Bye", 1));
    const turns = second.turns.map((turn) => ({ ...turn, turnIndex: 20 }));
    const texts = [...Array.from({ length: 20 }, () => "Hello indeed."), "Bye indeed."];
    const row = makeEpisode(
      id,
      texts.map((text) => ({ text })),
    );
    await writeViewedRun(dir, [{ row, samples: [first, { ...second, segment: 1, turns }] }]);
    await using server = await serveRuns(dir);
    // In such a narrow page, a token's details take several lines.
    await using watched = await watchPage(browser, { viewport: { width: 1_000, height: 700 } });
    const { page } = watched;
    const isInSight = async () => {
      await page.locator(".token.selected").waitFor();
      await page.evaluate(
        () =>
          new Promise((drawn) => {
            requestAnimationFrame(() => requestAnimationFrame(drawn));
          }),
      );
      return await page.evaluate(() => {
        const strip = document.querySelector("token-strip")!.getBoundingClientRect();
        const token = document.querySelector(".token.selected")!.getBoundingClientRect();
        return token.top >= strip.top && token.bottom <= strip.bottom;
      });
    };
    const link = linkTo({ page: "episode", run: "run", episode: id, row: 0, mode: "mask" });
    for (const down of [1, 2, 3]) {
      await page.goto("about:blank");
      await page.goto(server.url + link);
      await page.locator(".token").first().waitFor();
      const strip = await page.locator("token-strip").boundingBox();
      const tokens = page.locator(".token.kind-sampled");
      const boxes = await tokens.evaluateAll((all) =>
        all.map((each) => ({
          token: Number((each as HTMLElement).dataset["token"]),
          bottom: each.getBoundingClientRect().bottom,
        })),
      );
      const seen = boxes.filter(({ bottom }) => bottom < strip!.y + strip!.height);
      const { token } = seen.at(-down)!;
      await page.locator(`[data-token="${token}"]`).click();
      expect(await isInSight()).toBe(true);
    }
    for (let turn = 0; turn < 21; turn++) await press(page, "j");
    await page.locator('.turn.selected[data-turn="20"]').waitFor();
    await page.locator('.tree [aria-pressed="true"]').getByText("row 1").waitFor();
    expect(page.url()).toContain("row=1");
    await press(page, "k");
    await page.locator('.turn.selected[data-turn="19"]').waitFor();
    await page.locator('.tree [aria-pressed="true"]').getByText("row 0").waitFor();
  });

  test("is walked through by keys among runs, tasks and attempts", async () => {
    const [left, right] = ["left", "right"].map((name) => path.join(scratch, "walk", name));
    for (const [dir, reward] of [
      [left!, 1],
      [right!, 0],
    ] as const) {
      await writeViewedRun(dir, [
        await episode("shop/test/0#0", "a"),
        await episode("shop/test/1#0", "b", { reward }),
        await episode("shop/test/1#1", "c", { reward: 0 }),
      ]);
    }
    await using server = await serveRuns(left!, right!);
    await using watched = await watchPage(browser);
    const { page, complaints } = watched;
    await page.goto(server.url);
    await page.locator(".run-name").nth(1).waitFor();
    await press(page, "j", "j", "k", "j", "Enter");
    await page.getByRole("heading", { name: "right" }).waitFor();
    await press(page, "Escape", "j", "Tab", "Enter");
    await page.getByRole("link", { name: "compare with left" }).waitFor();
    await press(page, "j", "j", "Tab", "Enter");
    await page.getByRole("heading", { name: "left and right" }).waitFor();
    await press(page, "o");
    await page.getByRole("button", { name: "worst change first", pressed: true }).waitFor();
    await press(page, "j", "Enter");
    await page.getByRole("heading", { name: "shop/test/1" }).waitFor();
    await page.locator(".parting").nth(1).waitFor();
    expect(await page.locator(".breadcrumbs").innerText()).toContain("right");
    await press(page, "j");
    await page.locator(".group-head").getByText("Compared with attempt #1").waitFor();
    await press(page, "ArrowLeft");
    await page.locator(".group-head").getByText("Compared with attempt #0").waitFor();
    await press(page, "ArrowRight", "Enter");
    await page.locator(".episode-id").getByText("shop/test/1#1").waitFor();
    expect(complaints).toEqual([]);
  });
});

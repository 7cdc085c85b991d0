import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadTokenCodec } from "../../src/tokenizer/load-codec.ts";
import type { TreeTurn } from "../../src/episode/episode.ts";
import type { ColumnPart } from "../../src/columns/column-part.ts";
import { columnNames, type ColumnName } from "../../src/columns/column-specs.ts";
import type { TokenCodec } from "../../src/tokenizer/codec.ts";
import type { Sample } from "../../src/trajectory/sample.ts";
import { RunLock } from "../../src/run/disk/run-lock.ts";
import {
  addTeacher,
  taughtLogprob,
  taughtTop,
} from "../../src/export/teacher/teacher-run.fixture.ts";
import { formatLogprob, formatProbability } from "../../src/viewer/model/heat.ts";
import { differenceWords } from "../../src/viewer/model/teacher-token.ts";
import { linkTo, type Route } from "../../src/viewer/model/route.ts";
import {
  appendEpisode,
  appendSampled,
  logprobAt,
  makeEpisode,
  makeSample,
  markRecording,
  viewedModel,
  writeViewedRun,
  type ViewedEpisode,
} from "../../src/viewer/viewed-run.fixture.ts";
import {
  addColumns,
  expertsAt,
  keptAt,
  writeViewedColumns,
} from "../../src/viewer/viewed-columns.fixture.ts";
import { makeSeveralRows } from "../../src/viewer/several-rows.fixture.ts";
import { hasBrowser, launchBrowser, serveRescored, serveRuns, watchPage } from "./browser.ts";

const difference = {
  state: [
    { table: "orders", record: "9029", field: "status", wanted: "cancelled", got: "pending" },
  ],
  missingCalls: [{ name: "cancel_order", argumentsText: '{"order": "9029"}' }],
  extraCalls: [],
  missingOutputs: [],
};

const firstId = "shop/test/0#0";

describe.skipIf(!hasBrowser)("turnwright view", () => {
  let scratch = "";
  let browser: Browser;
  let codec: TokenCodec;
  let sample: Sample;
  beforeAll(async () => {
    scratch = await mkdtemp(path.join(tmpdir(), "turnwright-page-"));
    codec = await loadTokenCodec(viewedModel);
    sample = await makeSample(codec, firstId, [
      {
        text: "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nCancel my order.<|im_end|>\n<|im_start|>assistant\n",
      },
      { text: '<tool_call>\n{"name": "cancel"}\n</tool_call><|im_end|>', version: "7" },
      { text: "\n<|im_start|>user\nNo such tool.<|im_end|>\n<|im_start|>assistant\n" },
      { text: "I would like to", version: "7", finish: "length" },
      { text: "<|im_end|>\n<|im_start|>user\nGo on 🙂!<|im_end|>\n<|im_start|>assistant\n" },
      { text: "Bye.", version: "8", droppedStopId: 2939 },
      { text: "<|im_start|>user\n" },
    ]);
    browser = await launchBrowser();
  });
  afterAll(async () => {
    await browser?.close();
    await codec?.close?.();
    await rm(scratch, { recursive: true });
  });

  function firstEpisode(): ViewedEpisode {
    const text = '<tool_call>\n{"name": "cancel"}\n</tool_call>';
    const row = makeEpisode(
      firstId,
      [
        {
          text,
          attempts: [
            { status: "unknown-tool", name: "cancel", span: [0, text.length], tokenSpan: [0, 5] },
          ],
          steps: [
            { source: "cancel", callId: "c", observation: "No such tool.", result: "refused" },
          ],
        },
        { text: "I would like to", finish: "length" },
        {
          text: "Bye.",
          steps: [{ source: "user", callId: "d", observation: "", result: "acted" }],
        },
      ],
      { rewardDetails: { difference } },
    );
    return { row, samples: [sample] };
  }

  async function otherEpisode(id: string, words: string, reward?: number): Promise<ViewedEpisode> {
    const samples = [
      await makeSample(codec, id, [
        { text: "<|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\n" },
        { text: `Good morning. ${words}<|im_end|>`, version: "7" },
      ]),
    ];
    const row = makeEpisode(id, [{ text: `Good morning. ${words}` }]);
    if (reward === undefined) {
      const { reward: _none, ...unscored } = row;
      return { row: unscored, samples };
    }
    return { row: { ...row, reward }, samples };
  }

  function linkOf(route: Partial<Extract<Route, { page: "episode" }>> = {}): string {
    return linkTo({
      page: "episode",
      run: "run",
      episode: firstId,
      row: 0,
      mode: "mask",
      ...route,
    });
  }

  /** The strip's tokens, read out of the page. */
  async function shownTokens(page: Page) {
    return await page.locator(".token[data-token]").evaluateAll((tokens) =>
      tokens.map((token) => ({
        index: Number((token as HTMLElement).dataset["token"]),
        text: token.textContent,
        letter: token.parentElement!.querySelector(".letter")!.textContent,
        classes: [...token.classList],
      })),
    );
  }

  async function fieldsOf(page: Page): Promise<Record<string, string>> {
    return Object.fromEntries(
      await page
        .locator(".inspector [data-field]")
        .evaluateAll((fields) =>
          fields.map((field) => [
            (field as HTMLElement).dataset["field"]!,
            field.textContent.trim(),
          ]),
        ),
    );
  }

  test("shows each token of a row as the row has it", async () => {
    const dir = path.join(scratch, "values", "run");
    await writeViewedRun(dir, [firstEpisode()]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser, { viewport: { width: 1300, height: 1400 } });
    const { page, complaints, requests } = watched;
    await page.goto(server.url + linkOf());
    await page.locator(".token").first().waitFor();
    const shown = await shownTokens(page);
    expect(shown.map(({ index }) => index)).toEqual(sample.tokenIds.map((_, index) => index));
    // The close of the cut-off turn is the id after it.
    const close = sample.turns[1]!.end;
    const letters = sample.tokenIds.map((_, index) =>
      index < sample.promptLength
        ? "P"
        : sample.lossMask[index] === 1
          ? "S"
          : index === close
            ? "C"
            : "E",
    );
    expect(shown.map(({ letter }) => letter)).toEqual(letters);
    const spelled = shown.map(({ text }) => text).join("");
    const text = await codec.decode(sample.tokenIds);
    expect(spelled.replaceAll("·", "")).toBe(text.replaceAll("\n", "↵"));
    const legend = await page.locator(".legend").innerText();
    const count = (letter: string) => letters.filter((each) => each === letter).length;
    for (const letter of "PSEC") {
      expect(legend).toMatch(new RegExp(`${letter}\\s+[a-z ]+\\s*${count(letter)}\\b`));
    }
    expect(legend).toContain("the loss mask says the same, token by token");
    expect(await page.locator(".token.dropped-stop").count()).toBe(1);
    // Every number of every turn's first and last token, read back from the page.
    for (const { turnIndex, start, end } of sample.turns) {
      for (const index of [start, end - 1]) {
        await page.locator(`[data-token="${index}"]`).click();
        const fields = await fieldsOf(page);
        expect(fields).toMatchObject({
          index: String(index),
          id: String(sample.tokenIds[index]),
          mask: "1 · trained",
          turn: `turn ${turnIndex}`,
          logprob: formatLogprob(sample.logprobs[index]!),
          version: sample.policyVersions[index],
        });
        expect(await page.locator(".turn.selected").getAttribute("data-turn")).toBe(
          String(turnIndex),
        );
      }
    }
    expect(complaints).toEqual([]);
    expect(requests).toContain(`${server.url}viewer.js`);
    expect(
      requests.filter((url) => !url.startsWith(server.url) && !url.startsWith("data:")),
    ).toEqual([]);
  });

  test("shows a row of 100,000 tokens with only a few of them in the page, and finds distant ones", async () => {
    const word = await codec.encode(" needle");
    const [filler] = await codec.encode(" the");
    const count = 100_000;
    const promptLength = 1_000;
    const place = 90_001;
    const tokenIds = new Array<number>(count).fill(filler!);
    for (const [offset, id] of word.entries()) tokenIds[place + offset] = id;
    const isSampled = (index: number): boolean => index >= promptLength;
    const large: Sample = {
      ...sample,
      tokenIds,
      promptLength,
      lossMask: tokenIds.map((_, index) => (isSampled(index) ? 1 : 0)),
      logprobs: tokenIds.map((_, index) => (isSampled(index) ? logprobAt(index) : 0)),
      policyVersions: tokenIds.map((_, index) => (isSampled(index) ? "7" : "")),
      turns: [{ ...sample.turns[0]!, start: promptLength, end: count }],
    };
    const dir = path.join(scratch, "large", "run");
    await writeViewedRun(dir, [{ row: makeEpisode(firstId, [{ text: "…" }]), samples: [large] }]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url + linkOf({ token: 55_555 }));
    await page.locator('.token.selected[data-token="55555"]').waitFor();
    expect(await fieldsOf(page)).toMatchObject({ id: String(filler), turn: "turn 0" });
    await page.locator(".token-search").fill("NEEDLE");
    await page.locator(".search-count").getByText("1 of 1").waitFor();
    await page.locator(`.token.selected[data-token="${place}"]`).waitFor();
    expect(page.url()).toContain(`token=${place}`);
    await page.locator(".token-search").fill(`#${word.join(" ")}`);
    await page.locator(".search-count").getByText("1 of 1").waitFor();
    for (const part of [0, 0.3, 1]) {
      await page
        .locator("token-strip")
        .evaluate((strip, part) => (strip.scrollTop = strip.scrollHeight * part), part);
      await page.evaluate(
        () =>
          new Promise((drawn) => {
            requestAnimationFrame(() => requestAnimationFrame(drawn));
          }),
      );
      expect(await page.locator(".token").count()).toBeLessThan(2_000);
      expect(await page.locator(".token").count()).toBeGreaterThan(50);
    }
    expect(await page.locator(".token").last().getAttribute("data-token")).toBe(String(count - 1));
  });

  test("heats tokens by their probability, and walks to the worst", async () => {
    const dir = path.join(scratch, "heat", "run");
    await writeViewedRun(dir, [firstEpisode()]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser, { viewport: { width: 1300, height: 1400 } });
    const { page } = watched;
    await page.goto(server.url + linkOf({ mode: "logprob" }));
    await page.locator(".token").first().waitFor();
    const sampled = sample.tokenIds.flatMap((_, index) =>
      sample.lossMask[index] === 1 ? [index] : [],
    );
    const hot = sampled.filter((index) => Math.exp(logprobAt(index)) < 0.01);
    expect(hot.length).toBeGreaterThan(1);
    const shown = await shownTokens(page);
    const isHot = shown.filter(({ classes }) => classes.includes("heat-5"));
    expect(isHot.map(({ index }) => index)).toEqual(hot);
    const counted = await page.locator(".heat-legend [data-heat] b").allInnerTexts();
    expect(counted.map(Number).reduce((sum, count) => sum + count, 0)).toBe(sampled.length);
    expect(counted.at(-1)).toBe(String(hot.length));
    const worst = sampled.toSorted((a, b) => logprobAt(a) - logprobAt(b));
    for (const index of worst.slice(0, 2)) {
      await page.keyboard.press("n");
      await page.locator(`.token.selected[data-token="${index}"]`).waitFor();
    }
    await page.keyboard.press("p");
    await page.locator(`.token.selected[data-token="${worst[0]!}"]`).waitFor();
    await page.getByRole("button", { name: "Policy version" }).click();
    await page.locator(".legend").getByText("the policy changed within this row").waitFor();
    expect(await page.locator("[data-version] b").allInnerTexts()).toEqual(
      ["7", "8"].map((version) =>
        String(sample.policyVersions.filter((each) => each === version).length),
      ),
    );
  });

  test("holds the recorded logprobs against those that an engine computes again", async () => {
    const dir = path.join(scratch, "rescored", "run");
    await writeViewedRun(dir, [firstEpisode()]);
    const [first, second] = sample.turns.map(({ start }) => start);
    const asked: unknown[] = [];
    await using server = await serveRescored(dir, {
      temperature: 0.7,
      engine: {
        kind: "fake",
        score: ({ ids, from = 1, sampling }) => {
          asked.push([ids.length, from, sampling]);
          const scores = ids.map((_, index) => logprobAt(index)).slice(from);
          scores[second! - first!]! -= 0.25;
          return Promise.resolve(scores);
        },
      },
    });
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url + linkOf({ token: second! }));
    await page.getByRole("button", { name: "Rescored" }).click();
    await page.locator(".heat-legend").waitFor();
    const sampledCount = sample.lossMask.filter((bit) => bit === 1).length;
    const counts = await page.locator(".heat-legend [data-heat] b").allInnerTexts();
    expect(counts.map(Number)).toEqual([sampledCount - 1, 0, 0, 0, 1, 0]);
    expect(await page.locator(".token.heat-4").getAttribute("data-token")).toBe(String(second));
    expect((await fieldsOf(page))["rescored"]).toBe(formatLogprob(logprobAt(second!) - 0.25));
    expect(asked).toEqual([[sample.turns.at(-1)!.end, first, { temperature: 0.7 }]]);
  });

  test("shows the rows of an episode as a tree, and marks tokens trained in other rows", async () => {
    const prompt = { text: "<|im_start|>user\nHello.<|im_end|>\n<|im_start|>assistant\n" };
    const said = "Good morning.<|im_end|>";
    const first = await makeSample(codec, firstId, [
      prompt,
      { text: said, version: "7" },
      { text: "\n<|im_start|>user\nOne.<|im_end|>\n<|im_start|>assistant\n" },
      { text: "First way.<|im_end|>", version: "7" },
    ]);
    const second = await makeSample(codec, firstId, [
      { text: `${prompt.text}${said}\n<|im_start|>user\nTwo.<|im_end|>\n<|im_start|>assistant\n` },
      { text: "Second way.<|im_end|>", version: "7" },
    ]);
    const branched = {
      ...second,
      segment: 1,
      turns: second.turns.map((turn) => ({ ...turn, turnIndex: 2 })),
    };
    const resampled = await makeSample(codec, firstId, [
      { text: "<|im_start|>user\nA title?<|im_end|>\n<|im_start|>assistant\n" },
      { text: "Hello.<|im_end|>", version: "7" },
    ]);
    const rooted = {
      ...resampled,
      segment: 2,
      turns: resampled.turns.map((turn) => ({ ...turn, turnIndex: 3 })),
    };
    const texts = ["Good morning.", "First way.", "Second way.", ""];
    const treeTurn = {
      promptTokenCount: 1,
      sampledTokenCount: 1,
      outputHash: "",
      isDelivered: true,
      model: "policy",
    };
    const row = makeEpisode(
      firstId,
      texts.map((text) => ({ text })),
      {
        tree: [
          { ...treeTurn, cause: "first", turnIndex: 0 },
          { ...treeTurn, parent: 0, turnIndex: 2 },
          { ...treeTurn, parent: 0, turnIndex: 1 },
          { ...treeTurn, cause: "new-conversation", turnIndex: 3 },
          { ...treeTurn, parent: 3, isDelivered: false },
        ],
      },
    );
    const dir = path.join(scratch, "tree", "run");
    await writeViewedRun(dir, [{ row, samples: [first, branched, rooted] }]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url + linkOf());
    const shared = first.tokenIds.findIndex((id, index) => id !== second.tokenIds[index]);
    const branch = page.locator('.tree [data-row="0"] [data-row="1"]');
    expect(await branch.innerText()).toContain(
      `branches from row 0 after its turn 0, at token ${shared}`,
    );
    expect(await page.locator(".tree > ul > [data-cause]").count()).toBe(2);
    expect(await page.locator('.tree [data-row="2"]').innerText()).toMatch(
      /^row 2 new-conversation: a new conversation without sampled turns, .+ · turn 3, \d+ of \d+ tokens trained$/,
    );
    expect(await page.locator(".tree .untrained").innerText()).toBe(
      "1 more turn was sampled and is not trained: 1 never reached the client",
    );
    expect(await page.locator('[data-row-start="1"]').innerText()).toContain("after its turn 0");
    // A turn without text still has its tokens in its row.
    await page.locator(".wordless").click();
    await page.locator('.tree [data-row="2"] button[aria-pressed="true"]').waitFor();
    expect(await page.locator('.turn[data-turn="3"] .text').innerText()).toBe("Hello.<|im_end|>");
    // A turn that is trained in the other row leads there.
    await page.locator('.turn[data-turn="2"] .turn-head').click();
    await page.locator('.tree [data-row="1"] button[aria-pressed="true"]').waitFor();
    const { start } = branched.turns[0]!;
    await page.locator(`.token.selected[data-token="${start}"]`).waitFor();
    const context = (await shownTokens(page)).filter(({ letter }) => letter === "X");
    const trained = first.turns[0]!;
    expect(context.map(({ index }) => index)).toEqual(
      Array.from({ length: trained.end - trained.start }, (_, index) => trained.start + index),
    );
    expect(await page.locator(".legend").innerText()).toMatch(/X\s+context\s+\d+\s+not trained/);
  });

  test("shows the role and the origin of each row, and the turns that are not trained", async () => {
    const dir = path.join(scratch, "roles", "run");
    await writeViewedRun(dir, [
      await makeSeveralRows(codec, firstId),
      await otherEpisode("shop/test/1#0", "a", 1),
    ]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page, complaints } = watched;
    await page.goto(server.url);
    await page.getByRole("button", { name: "rows>1" }).click();
    await page.locator(".shown-count").getByText("1 of 2").waitFor();
    expect(await page.locator(".list-row .cell-rows").allInnerTexts()).toEqual(["4"]);
    await page.locator(".list-row").click();
    await page.locator('.tree [data-row="3"]').waitFor();
    const rows = await page.locator(".tree [data-row]").allInnerTexts();
    expect(rows.map((text) => text.replace(/ · turns? .*$/, ""))).toEqual([
      "row 0 main · first",
      "row 1 sub-agent called by turn 0 of row 0 · new-conversation",
      "row 2 compaction asked for a summary after turn 1 of row 0 · new-conversation",
      "row 3 main after compaction by turn 3 of row 2 · moved-turn",
    ]);
    expect(await page.locator(".tree [data-untrained]").allInnerTexts()).toEqual([
      "rejected, not trained compaction, asked for a summary after turn 1 · 9 tokens · another summary of the same history was used",
      "not delivered, not trained after turn 4 · 1 token · it never reached the client completely",
    ]);
    // In the conversation, they follow the turn that they come from.
    const items = await page
      .locator(".conversation > li")
      .evaluateAll((all) =>
        all.flatMap(({ dataset }) => dataset["turn"] ?? dataset["untrained"] ?? []),
      );
    expect(items).toEqual(["0", "1", "3", "2", "3", "4", "6"]);
    expect(await page.locator('[data-row-start="1"]').innerText()).toBe(
      "row 1 · sub-agent, called by turn 0 of row 0 · new-conversation · its prompt is among the tokens",
    );
    await page.locator('.tree [data-row="1"] button').first().click();
    await page.locator(".row-head").getByText("row 1 (2 of 4)").waitFor();
    expect(await page.locator(".row-head").innerText()).toBe(
      "row 1 (2 of 4) · sub-agent, called by turn 0 of row 0 · 10 of the attempt's 73 trained tokens (13.7 %)",
    );
    expect(await page.locator(".verdict .sums").innerText()).toMatch(/rows\s+4/);
    // The origin leads to its turn, also by keys.
    await page.locator('.tree [data-row="3"] .origin').focus();
    await page.keyboard.press("Enter");
    await page.locator('.tree [data-row="2"] button[aria-pressed="true"]').waitFor();
    await page.locator('.turn.selected[data-turn="3"]').waitFor();
    expect(complaints).toEqual([]);
  });

  test("shows the turns that are not trained also if there is one row", async () => {
    const dir = path.join(scratch, "rejected", "run");
    const { row, samples } = firstEpisode();
    const turn = {
      promptTokenCount: 1,
      sampledTokenCount: 1,
      outputHash: "",
      isDelivered: true,
      model: "policy",
    };
    const tree: readonly TreeTurn[] = [
      { ...turn, cause: "first", turnIndex: 0 },
      { ...turn, parent: 0, role: "retry", rejected: "resumed-sibling" },
      { ...turn, parent: 0, turnIndex: 1 },
      { ...turn, parent: 2, turnIndex: 2 },
    ];
    await writeViewedRun(dir, [{ row: { ...row, tree }, samples }]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url + linkOf());
    await page.locator(".tree [data-untrained]").waitFor();
    expect(await page.locator(".tree > summary").innerText()).toBe("1 sampled turn is not trained");
    expect(await page.locator(".tree [data-untrained]").innerText()).toBe(
      "rejected, not trained retry, after turn 0 · 1 token · the same request was sampled again, and that reply was continued",
    );
    await page.locator(".token").first().waitFor();
    expect(await page.locator(".row-head, .tree [data-row]").count()).toBe(0);
  });

  test("says why an episode earned 0, and what became of its calls", async () => {
    const dir = path.join(scratch, "why", "run");
    await writeViewedRun(dir, [firstEpisode()]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url);
    await page.locator(".list-row").click();
    const verdict = page.getByRole("region", { name: "why this reward" });
    expect(await verdict.locator("h1").innerText()).toBe("✗ Reward 0");
    expect(await verdict.locator("tbody tr").allInnerTexts()).toEqual([
      'orders 9029 · status\t"cancelled"\t"pending"',
      'call\tcancel_order {"order": "9029"}\tnever called',
    ]);
    expect(await verdict.locator(".sums").innerText()).toMatch(/trained tokens\s+20 of 100/);
    expect(await page.locator(".attempt-status").innerText()).toBe(
      "cancel · call refused: there is no such tool",
    );
    expect(await page.locator(".said-tool .warning").innerText()).toBe(
      "refused: it never reached the environment",
    );
    await page.locator(".attempt-status").click();
    await page.locator(`.token.selected[data-token="${sample.turns[0]!.start}"]`).waitFor();
  });

  test("shows who took the time of each turn, as far as that is recorded", async () => {
    const dir = path.join(scratch, "time", "run");
    const times = { engineMs: 40, queueMs: 15, parseMs: 7, environmentMs: 5, userMs: 1_100 };
    const { row } = firstEpisode();
    const [first, ...others] = row.turns;
    const turns = [{ ...first!, ...times }, ...others];
    await writeViewedRun(dir, [{ row: { ...row, turns }, samples: [sample] }]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url + linkOf());
    await page.locator(".token").first().waitFor();
    await page.keyboard.press("t");
    const cells = (turn: number) =>
      page.locator(`[data-turn-time="${turn}"] td[data-lane]`).allInnerTexts();
    await page.locator("[data-turn-time]").first().waitFor();
    expect(await page.locator(".lanes thead th").allInnerTexts()).toEqual([
      "",
      "",
      "queue",
      "engine",
      "parse",
      "environment",
      "user",
      "tokens in → out",
    ]);
    expect(await cells(0)).toEqual(["15 ms", "25 ms", "7 ms", "5 ms", "1.1 s"]);
    expect(await cells(1)).toEqual(["–", "20 ms", "–", "5 ms", "–"]);
    const widths = await page
      .locator('[data-turn-time="0"] .lane span')
      .evaluateAll((lanes) => lanes.map((lane) => lane.getBoundingClientRect().width));
    const [queue, engine] = widths;
    expect(widths.length).toBe(5);
    expect(queue! / engine!).toBeCloseTo(15 / 25, 1);
  });

  test("marks where sampling was interrupted, and leads to each kind of token", async () => {
    const dir = path.join(scratch, "resumed", "run");
    const { row } = firstEpisode();
    const [first, ...others] = row.turns;
    const { start, end } = sample.turns[0]!;
    const piece = { policyVersion: "7", finish: "abort" } as const;
    const pieces = [
      { ...piece, requestId: "r", tokenCount: 2 },
      { ...piece, requestId: "r", tokenCount: 1 },
      { ...piece, requestId: "r1~r", tokenCount: end - start - 3 },
    ];
    const turns = [{ ...first!, pieces, interruptionCount: 1 }, ...others];
    await writeViewedRun(dir, [{ row: { ...row, turns }, samples: [sample] }]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser, { viewport: { width: 1300, height: 1400 } });
    const { page } = watched;
    await page.goto(server.url + linkOf());
    await page.locator(".token").first().waitFor();
    expect(await page.locator(".token.resumed").getAttribute("data-token")).toBe(String(start + 3));
    const sampled = page.locator('.legend [data-kind="sampled"] button');
    for (const turn of [...sample.turns, sample.turns[0]!]) {
      await sampled.click();
      await page.locator(`.token.selected[data-token="${turn.start}"]`).waitFor();
    }
  });

  test("shows forks, episodes without a row, and runs without episodes in their own forms", async () => {
    const dir = path.join(scratch, "odd", "run");
    const fork = await otherEpisode("shop/test/0#1", "again", 1);
    const failure = { party: "engine", code: "engine/unreachable", message: "gone" } as const;
    const { reward: _none, ...failed } = makeEpisode("shop/test/3#0", [], {
      outcome: "failed",
      stopReason: "failure",
      counts: {
        turnCount: 0,
        sampledTokenCount: 0,
        tokenCount: 0,
        toolCallCount: 0,
        formatErrorCount: 0,
        attemptCounts: {},
      },
    });
    await writeViewedRun(dir, [
      firstEpisode(),
      // As another program may write it: the failure after the messages.
      { row: { ...failed, failure }, samples: [] },
      { ...fork, row: { forkedFrom: { rolloutId: firstId, turnIndex: 2 }, ...fork.row } },
    ]);
    const empty = path.join(scratch, "odd", "empty");
    await writeViewedRun(empty, []);
    await using server = await serveRuns(dir, empty);
    await using watched = await watchPage(browser);
    const { page, complaints } = watched;
    await page.goto(`${server.url}#/run/run?order=order`);
    await page.locator(".list-row").nth(2).waitFor();
    const order = () =>
      page.locator(".list-row").evaluateAll((rows) => rows.map((row) => row.textContent.trim()));
    expect((await order()).map((text) => /\d+$/.exec(text)![0])).toEqual(["1", "2", "3"]);
    await page.getByRole("button", { name: "party:engine" }).click();
    await page.locator(".shown-count").getByText("1 of 3").waitFor();
    await page.locator('[data-episode="shop/test/3#0"]').click();
    await page.getByText("There is no training row").waitFor();
    await page.goto(server.url + linkOf({ episode: "shop/test/0#1" }));
    expect(await page.locator(".turn.trained-elsewhere .facts").innerText()).toContain(
      "trained in what it is forked from",
    );
    await page.keyboard.press("g");
    await page.locator(".forked a").getByText("#0").waitFor();
    await page.goto(server.url + linkOf({ episode: "shop/test/0#1" }));
    await page.locator(".fork-note a").click();
    await page.locator('.turn.selected[data-turn="2"]').waitFor();
    expect(page.url()).toContain(linkOf({ turn: 2 }));
    await page.goto(`${server.url}#/run/empty`);
    await page.getByText("The run has no episodes.").waitFor();
    expect(complaints).toEqual([]);
  });

  test("says how stale each episode is, and narrows the list by it", async () => {
    const dir = path.join(scratch, "stale", "run");
    await writeViewedRun(dir, [
      firstEpisode(),
      await otherEpisode("shop/test/1#0", "a", 1),
      await otherEpisode("shop/test/2#0", "b", 0),
    ]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url);
    // The first was sampled by 7 and 8, the others by 7 when 8 was there already.
    await page.getByRole("button", { name: "stale>0" }).click();
    await page.locator(".shown-count").getByText("3 of 3").waitFor();
    await page.locator(".filter-input").fill("stale=0");
    await page.getByText("No episode fits the filter").waitFor();
    await page.locator(".filter-input").fill("");
    expect(await page.locator(".list-row .cell-stale").allInnerTexts()).toEqual(["1", "1", "1"]);
  });

  test("keeps hostile texts text", async () => {
    const hostile = [
      '<img src=x onerror="document.title=\'broken\'"><script>document.title="broken"</script>',
      "\u202Eright to left\u202C \uD800 \u0000\u001B[31m <|im_end|> ${1+1} {{1}}",
    ];
    const long = "x".repeat(1_000_000);
    const id = "shop/<b>/0#0";
    const row = makeEpisode(
      id,
      [
        {
          text: hostile[0]!,
          steps: [{ source: "user", callId: "a", observation: hostile[1]!, result: "acted" }],
        },
        {
          text: "",
          steps: [{ source: "<i>tool</i>", callId: "b", observation: long, result: "acted" }],
        },
      ],
      { messages: [{ role: "user", content: hostile[0]! }] },
    );
    const made = await makeSample(codec, id, [
      { text: `<|im_start|>user\n${hostile.join("")}` },
      { text: `${hostile[0]!}<|im_end|>`, version: '"><img src=x>' },
    ]);
    const dir = path.join(scratch, "hostile", "run");
    await writeViewedRun(dir, [{ row, samples: [made] }]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page, complaints, requests } = watched;
    await page.goto(server.url);
    await page.locator(".list-row").click();
    await page.locator(".token").first().waitFor();
    await page.keyboard.press("j");
    expect(await page.locator(".turn.selected .said-agent .text").innerText()).toBe(hostile[0]);
    expect(await page.locator('[data-turn="0"] .said-user .text').innerText()).toBe(
      "⟨U+202E⟩right to left⟨U+202C⟩ ⟨U+D800⟩ ␀␛[31m <|im_end|> ${1+1} {{1}}",
    );
    expect(await page.locator(".tool-name").innerText()).toBe("<i>tool</i>");
    // A line of a million characters is cut, and more of it comes when asked.
    const cut = page.locator('[data-turn="1"] .said-tool .text');
    expect((await cut.innerText()).length).toBe(3_000);
    await page.locator('[data-turn="1"] .more').click();
    await page.waitForFunction(
      () =>
        document.querySelector('[data-turn="1"] .said-tool .text')!.textContent.length === 53_000,
    );
    expect(await page.locator("img, script:not([src]), i").count()).toBe(0);
    expect(await page.title()).toBe("shop/<b>/0#0 · run · Turnwright");
    expect(complaints).toEqual([]);
    expect(
      requests.filter((url) => !url.startsWith(server.url) && !url.startsWith("data:")),
    ).toEqual([]);
  });

  test("can be walked through by keys alone", async () => {
    const dir = path.join(scratch, "keys", "run");
    await writeViewedRun(dir, [
      firstEpisode(),
      await otherEpisode("shop/test/0#1", "How are you?", 1),
      await otherEpisode("shop/test/1#0", "How do you do?"),
    ]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page, complaints } = watched;
    await page.goto(server.url);
    await page.locator(".list-row").first().waitFor();
    const keys = async (...pressed: readonly string[]) => {
      for (const key of pressed) await page.keyboard.press(key);
    };
    await keys("/");
    await page.keyboard.type("test/0");
    await page.locator(".shown-count").getByText("2 of 3").waitFor();
    await keys("Escape", "j", "Enter");
    await page.locator(".verdict").waitFor();
    await page.locator(".token").first().waitFor();
    await keys("j", "j");
    await page.locator('.turn.selected[data-turn="1"]').waitFor();
    await keys("k", "ArrowRight");
    const { start } = sample.turns[0]!;
    await page.locator(`.token.selected[data-token="${start + 1}"]`).waitFor();
    await keys("m");
    await page.locator(".heat-legend").waitFor();
    // The browser's own search would see only the drawn part.
    await keys("Control+f");
    await page.keyboard.type("no such tool");
    await page.locator(".search-count").getByText("1 of 1").waitFor();
    await keys("Enter", "Escape", "]");
    await page.locator(".episode-id").getByText("shop/test/0#1").waitFor();
    await keys("g");
    await page.locator(".column").nth(1).waitFor();
    await keys("Escape");
    await page.locator('.list-row.current[data-group="shop/test/0"]').waitFor();
    await keys("?");
    await page.getByRole("dialog", { name: "keys" }).waitFor();
    await keys("Escape", "Tab");
    expect(await page.evaluate(() => document.activeElement!.matches(":focus-visible"))).toBe(true);
    expect(complaints).toEqual([]);
  });

  test("sets attempts side by side, and marks the first difference", async () => {
    const dir = path.join(scratch, "group", "run");
    const attempts = await Promise.all(
      Array.from({ length: 8 }, (_, index) =>
        otherEpisode(`shop/test/4#${index}`, index < 4 ? "How are you?" : "How is it?", index % 2),
      ),
    );
    await writeViewedRun(dir, attempts);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser, { viewport: { width: 2_600, height: 900 } });
    const { page } = watched;
    await page.goto(
      server.url + linkTo({ page: "group", run: "run", group: "shop/test/4", base: 0 }),
    );
    await page.locator(".parting[data-token]").nth(3).waitFor();
    const labels = await page.locator(".column .parting").allInnerTexts();
    const [one, two] = [attempts[0]!, attempts[4]!].map(({ samples }) => samples[0]!.tokenIds);
    const token = one!.findIndex((id, index) => id !== two![index]);
    expect(labels).toEqual([
      "the one compared with",
      ...Array.from({ length: 3 }, () => "the same tokens as #0"),
      ...Array.from({ length: 4 }, () => `differs from #0 at token ${token}, turn 0`),
    ]);
    await page.getByRole("button", { name: "#5" }).click();
    await page.locator('[data-attempt="4"]').getByText("the same tokens as #5").waitFor();
    expect(await page.locator(".group-head").innerText()).toContain(
      "8 attempts, mean reward 0.500, spread 0.500.",
    );
  });

  test("flags groups without a difference, and narrows the list by a bin", async () => {
    const dir = path.join(scratch, "list", "run");
    await writeViewedRun(dir, [
      await otherEpisode("shop/test/0#0", "a", 1),
      await otherEpisode("shop/test/0#1", "b", 1),
      await otherEpisode("shop/test/1#0", "c", 0),
      await otherEpisode("shop/test/1#1", "d", 1),
      await otherEpisode("shop/test/2#0", "e"),
    ]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url);
    await page.locator('.histogram[data-field="reward"] .bin').last().click();
    await page.locator(".shown-count").getByText("3 of 5").waitFor();
    expect(await page.locator(".filter-input").inputValue()).toBe("reward>=1");
    await page.locator(".filter-input").fill("");
    await page.getByRole("link", { name: "Groups" }).click();
    await page.locator("[data-group]").first().waitFor();
    const flagged = await page
      .locator("[data-group]")
      .evaluateAll((rows) =>
        rows.map((row) => [
          (row as HTMLElement).dataset["group"],
          row.querySelector(".degenerate") !== null,
        ]),
      );
    expect(flagged).toEqual([
      ["shop/test/0", true],
      ["shop/test/1", false],
      ["shop/test/2", false],
    ]);
  });

  test("lists the runs of a folder, and compares two of them task by task", async () => {
    const runs = path.join(scratch, "compare");
    const [left, right, other] = ["left", "right", "other"].map((name) => path.join(runs, name));
    await writeViewedRun(left!, [
      await otherEpisode("shop/test/0#0", "a", 1),
      await otherEpisode("shop/test/1#0", "b", 1),
      await otherEpisode("shop/test/2#0", "b", 0),
    ]);
    await writeViewedRun(right!, [
      await otherEpisode("shop/test/0#0", "a", 1),
      await otherEpisode("shop/test/1#0", "b", 0),
      await otherEpisode("shop/test/2#0", "b", 1),
    ]);
    const desk = await otherEpisode("desk/test/0#0", "a", 1);
    await writeViewedRun(other!, [{ ...desk, row: { ...desk.row, environment: "desk" } }]);
    await using server = await serveRuns(runs);
    await using watched = await watchPage(browser);
    const { page, complaints } = watched;
    await page.goto(server.url);
    await page.getByRole("button", { name: "mean reward" }).click();
    const rowOf = (run: string) => page.locator(`[data-run="${run}"]`);
    await expect
      .poll(async () => await page.locator(".run-name").allInnerTexts())
      .toEqual(["left", "right", "other"]);
    expect(await rowOf("left").locator(".estimate").innerText()).toBe("0.667 0.09 to 0.99");
    await rowOf("left").getByRole("button", { name: "compare" }).click();
    await rowOf("other")
      .getByText("cannot compare: one is of shop/test, the other of desk/test")
      .waitFor();
    await page.getByRole("link", { name: "compare with left" }).click();
    await page.getByText("the settings are the same").waitFor();
    await page.getByRole("button", { name: "worst change first" }).click();
    expect(await page.locator("[data-task]").allInnerTexts()).toEqual([
      "shop/test/1\t1.000\t0.000\t▼ −1.000",
      "shop/test/0\t1.000\t1.000\t= same",
      "shop/test/2\t0.000\t1.000\t▲ +1.000",
    ]);
    await page.locator(".run-choices select").last().selectOption("other");
    await page
      .getByText("Cannot compare left and other: one is of shop/test, the other of desk/test")
      .waitFor();
    await page.goto(`${server.url}#/about/left`);
    const figure = page.locator('[data-figure="mean reward"] td');
    await figure.first().waitFor();
    expect(await figure.allInnerTexts()).toEqual(["0.667", "0.094 to 0.992, Clopper-Pearson"]);
    await page.getByRole("region", { name: "Settings" }).getByText("reference").waitFor();
    expect(complaints).toEqual([]);
  });

  test("shows appended tokens without moving the view", async () => {
    const dir = path.join(scratch, "live", "run");
    const first = await Promise.all(
      Array.from({ length: 60 }, (_, index) =>
        otherEpisode(`shop/test/${2 * index}#0`, `number ${index}`, index % 2),
      ),
    );
    await writeViewedRun(dir, first, { planned: 200, isFinished: false });
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page, complaints } = watched;
    await page.goto(server.url);
    await page.locator(".state-stopped").waitFor();
    const list = page.locator("virtual-list");
    await list.evaluate((box) => (box.scrollTop = 34 * 20 + 10));
    const firstSeen = () =>
      list.evaluate((box) => {
        const top = box.getBoundingClientRect().top;
        const rows = [...box.querySelectorAll<HTMLElement>("[data-episode]")];
        const row = rows.find((each) => each.getBoundingClientRect().bottom > top)!;
        return [row.dataset["episode"], Math.round(row.getBoundingClientRect().top - top)];
      });
    await page.waitForFunction(
      () =>
        document.querySelector("virtual-list [data-episode]")!.getAttribute("data-episode") !==
        "shop/test/0#0",
    );
    const before = await firstSeen();
    expect(before[0]).toBe("shop/test/40#0");
    // They are inserted above and below the visible part.
    for (const task of [1, 3, 5, 99, 101]) {
      await appendEpisode(dir, await otherEpisode(`shop/test/${task}#0`, "later", 1));
    }
    await page.locator(".shown-count").getByText("65 of 65").waitFor();
    expect(await firstSeen()).toEqual(before);
    // A reader at the end of the list stays at the end.
    await page.getByRole("button", { name: "ended as", exact: true }).click();
    await list.evaluate((box) => (box.scrollTop = box.scrollHeight));
    await appendEpisode(dir, await otherEpisode("shop/test/151#0", "last", 1));
    await page.locator('[data-episode="shop/test/151#0"]').waitFor();
    const isAtEnd = await list.evaluate(
      (box) => box.scrollTop + box.clientHeight >= box.scrollHeight - 2,
    );
    expect(isAtEnd).toBe(true);
    expect(complaints).toEqual([]);
  });

  test("shows an episode while it is being played, turn by turn, and then as it ended", async () => {
    const dir = path.join(scratch, "playing", "run");
    await writeViewedRun(dir, [await otherEpisode("shop/test/1#0", "a", 1)], {
      planned: 2,
      isFinished: false,
    });
    await using _lock = await RunLock.take(dir);
    const ids = await codec.encode("Good morning.\n<|im_end|>");
    const turn = { ids, version: "7", answer: "the weather is <b>fine</b>" };
    await markRecording(dir, firstId, "begin");
    await appendSampled(dir, firstId, turn);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page, complaints } = watched;
    await page.goto(server.url);
    await page.locator(".state-running").waitFor();
    await page.locator(`[data-running="${firstId}"]`).click();
    await page.getByText("Being played: 1 turn so far").waitFor();
    await page.locator(`[data-token="${ids.length - 1}"]`).waitFor();
    const shown = async () => (await shownTokens(page)).map(({ index }) => index);
    expect(await shown()).toEqual(ids.map((_, index) => index));
    expect(await page.locator(".turn .said-tool .text").innerText()).toBe(turn.answer);
    // There is no mask yet that could agree.
    expect(await page.locator(".legend .agrees").innerText()).toContain("so far");
    // The end was in sight, and stays so.
    const strip = page.locator("token-strip");
    const append = async (count: number) => {
      for (let done = 0; done < count; done++) await appendSampled(dir, firstId, turn);
    };
    await append(60);
    await page.locator(`[data-token="${61 * ids.length - 1}"]`).waitFor();
    // A reader at the start of the list stays there.
    await strip.evaluate((box) => (box.scrollTop = 48));
    // The page notices the scrolling in the next frame.
    await page.locator('[data-token="0"]').waitFor();
    await append(1);
    await page.getByText("Being played: 62 turns so far").waitFor();
    expect(await strip.evaluate((box) => box.scrollTop)).toBe(48);
    expect((await shown())[0]).toBe(0);
    // It ends: its row replaces the recorded part.
    await appendEpisode(dir, firstEpisode());
    await markRecording(dir, firstId, "end");
    await page.locator(".verdict h1").getByText("Reward 0").waitFor();
    await page.locator('.token[data-token="0"].kind-prompt').waitFor();
    expect(complaints).toEqual([]);
  });

  test("shows ids if the tokenizer is gone, and says so", async () => {
    const dir = path.join(scratch, "ids", "run");
    await writeViewedRun(dir, [firstEpisode()], { model: path.join(scratch, "gone") });
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url + linkOf());
    await page.locator(".token").first().waitFor();
    expect(await page.locator('[data-token="0"]').innerText()).toBe(String(sample.tokenIds[0]));
    await page.locator(".tokens .broken").getByText("name its folder with --model").waitFor();
  });

  test("names the fault of a damaged row", async () => {
    const dir = path.join(scratch, "damaged", "run");
    const { row } = firstEpisode();
    const lossMask = sample.lossMask.map((bit, index) => (index === sample.promptLength ? 0 : bit));
    await writeViewedRun(dir, [{ row, samples: [{ ...sample, lossMask }] }]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url + linkOf());
    await page.locator(".legend").getByText("says otherwise at 1 tokens").waitFor();
    expect(await page.locator(".token.disagrees").getAttribute("data-token")).toBe(
      String(sample.promptLength),
    );
    await page.goto(server.url + linkOf({ row: 4 }));
    await page.getByText("has no training row 4").waitFor();
  });

  test("shows the side columns of the chosen token, and whether their hashes hold", async () => {
    const dir = path.join(scratch, "columns", "run");
    const { row } = firstEpisode();
    const { sample: withColumns, parts } = addColumns(sample);
    await writeViewedRun(dir, [{ row, samples: [withColumns] }]);
    await writeViewedColumns(dir, parts);
    const { from, rows, hash } = await changePart(dir, parts, withColumns.columns!.keptTokens![1]!);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser, { viewport: { width: 1300, height: 1400 } });
    const { page, complaints, requests } = watched;
    const token = sample.turns[0]!.start + 1;
    const id = sample.tokenIds[token]!;
    await page.goto(server.url + linkOf({ token }));
    await page.locator(".side-columns").waitFor();
    expect(requests.filter((url) => url.includes("/column/"))).toEqual([]);
    for (const name of columnNames) await page.locator(`button[data-column="${name}"]`).click();
    const openOf = (name: ColumnName) => page.locator(`[data-open="${name}"]`);
    const valuesOf = (name: ColumnName) => openOf(name).locator("[data-field=values]");
    const checkOf = (name: ColumnName) => openOf(name).locator("[data-field=check]");
    const layers = valuesOf("routedExperts").locator("li");
    await layers.first().waitFor();
    expect(await layers.allInnerTexts()).toEqual([
      "0 dense",
      ...expertsAt(token)
        .slice(1)
        .map((ids, layer) => `${layer + 1} ${ids.join(" ")}`),
    ]);
    expect(await checkOf("topLogprobs").innerText()).toMatch(
      /^✓ checked: 3 parts, \d+ B, all hashes hold$/,
    );
    expect(await checkOf("keptTokens").innerText()).toBe(
      `✗ the part of tokens ${from} to ${from + rows - 1} was changed: its bytes do not have the hash ${hash}`,
    );
    const kept = valuesOf("keptTokens").locator("tbody tr");
    await kept.first().waitFor();
    expect(await kept.locator("td:nth-child(2)").allInnerTexts()).toEqual(
      keptAt(token, id).map(String),
    );
    expect(await valuesOf("keptTokens").locator("tr.own td.text").textContent()).toBe(
      await page.locator(`.token[data-token="${token}"]`).textContent(),
    );
    const best = valuesOf("topLogprobs").locator("tbody tr").first().locator("td");
    await best.first().waitFor();
    expect((await best.allInnerTexts()).slice(1)).toEqual(["4", "-0.5000", "60.7 %"]);
    await valuesOf("indexerTopK").getByText("and 8 more").waitFor();
    // The columns stay open while the token changes.
    await page.locator(`.token[data-token="${sample.promptLength - 1}"]`).click();
    await openOf("keptTokens").getByText("it was not sampled").waitFor();
    await layers
      .nth(2)
      .getByText(`7 ${(sample.promptLength - 1) % 7}`)
      .waitFor();
    await page.locator(`.token[data-token="${sample.tokenIds.length - 1}"]`).click();
    await openOf("routedExperts").getByText("the engine did not compute it").waitFor();
    expect(complaints).toEqual([]);
    await page.goto(`${server.url}#/run/run`);
    await page.getByText("side columns: routed experts, kept tokens, top logprobs").waitFor();
  });

  test("shows each teacher's logprob of the chosen token, and its most probable ids", async () => {
    const dir = path.join(scratch, "taught", "run");
    await writeViewedRun(dir, [{ row: firstEpisode().row, samples: [sample] }]);
    await addTeacher(dir, { name: "large", topCount: 3 });
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page, complaints } = watched;
    const token = sample.turns[0]!.start + 1;
    const ids = sample.tokenIds;
    await page.goto(server.url + linkOf({ token }));
    const panel = page.locator('[data-teacher="large"]');
    await panel.waitFor();
    const logprob = taughtLogprob(ids, token);
    expect(await panel.locator("[data-field=teacher]").innerText()).toBe(
      `${logprob.toFixed(4)} (${formatProbability(logprob)}), ${differenceWords(logprob, sample.logprobs[token]!)}`,
    );
    const rows = panel.locator("tbody tr");
    await rows.first().waitFor();
    expect(await rows.locator("td:nth-child(2)").allInnerTexts()).toEqual(
      taughtTop(ids, token, 3).map(({ id }) => String(id)),
    );
    await page.locator(`.token[data-token="${sample.promptLength - 1}"]`).click();
    await page.getByText("it belongs to the prompt, or its row was left out").waitFor();
    expect(complaints).toEqual([]);
  });

  /** Changes the last byte of a part in a run's folder. Returns the part. */
  async function changePart(
    dir: string,
    parts: readonly ColumnPart[],
    part: ColumnPart,
  ): Promise<ColumnPart> {
    const before = parts.slice(
      0,
      parts.findIndex(({ hash }) => hash === part.hash),
    );
    const end = before.reduce((sum, { size }) => sum + size, part.size);
    const file = path.join(dir, "columns/start-0-0000.bin");
    const bytes = await readFile(file);
    bytes[end - 1]! ^= 1;
    await writeFile(file, bytes);
    return part;
  }

  test("shows nothing of side columns in a run without them", async () => {
    const dir = path.join(scratch, "no-columns", "run");
    await writeViewedRun(dir, [firstEpisode()]);
    await using server = await serveRuns(dir);
    await using watched = await watchPage(browser);
    const { page } = watched;
    await page.goto(server.url + linkOf({ token: 3 }));
    await page.locator('.inspector [data-field="index"]').waitFor();
    expect(await page.locator(".side-columns").count()).toBe(0);
    for (const [name, token] of [
      ["keptTokens", "3"],
      ["constructor", "3"],
      ["keptTokens", "0.5"],
    ]) {
      const asked = new URLSearchParams({ id: firstId, row: "0", token: token! });
      const reply = await fetch(`${server.url}api/runs/run/column/${name}/token?${asked}`);
      expect(reply.status).toBe(404);
      expect(await reply.json()).toEqual({
        error: `${dir} has no column ${name} for token ${token} in row 0 of ${firstId}`,
      });
    }
  });
});

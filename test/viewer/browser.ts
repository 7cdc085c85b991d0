import { existsSync } from "node:fs";
import { chromium, type Browser, type Page } from "playwright-core";
import { expect } from "vitest";
import { startViewer } from "../../src/viewer/server.ts";
import type { Rescoring } from "../../src/viewer/source/rescore-row.ts";
import { openRuns } from "../../src/viewer/source/run-catalog.ts";

const places = [
  process.env["CHROMIUM"],
  // It draws no windows, so it takes half the work.
  "/usr/bin/chromium-headless-shell",
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
];

const executablePath = places.find((place) => place !== undefined && existsSync(place));

/** The page that `npm test` has built. */
export const builtPage = new URL("../../dist/src/viewer/page/", import.meta.url);

/**
 * True if the tests of the page run: in CI they fail instead of skipping if there is no browser.
 */
export const hasBrowser = executablePath !== undefined || process.env["CI"] !== undefined;

if (!hasBrowser) {
  console.warn(
    "SKIPPED: the viewer's page is not tested, for no Chromium is here " +
      "(install Debian's chromium-headless-shell, or name a browser in CHROMIUM)",
  );
}

/** Starts the browser that the tests of a file share. */
export async function launchBrowser(): Promise<Browser> {
  expect(executablePath, "CI installs Chromium").toBeDefined();
  return await chromium.launch({
    executablePath: executablePath!,
    args: ["--no-sandbox"],
    timeout: 600_000,
  });
}

/** A page that was watched: everything that it asked for and complained of. */
export interface WatchedPage extends AsyncDisposable {
  readonly page: Page;
  readonly requests: readonly string[];
  readonly complaints: readonly string[];
}

/** Pages that no test watches. A renderer takes half a second to start, and tests use it one after another. */
const freePages = new WeakMap<Browser, Page>();

/** Opens a page of a browser's and watches it. With options it is a new one. */
export async function watchPage(
  browser: Browser,
  options: NonNullable<Parameters<Browser["newPage"]>[0]> = {},
): Promise<WatchedPage> {
  const { viewport = { width: 1300, height: 850 }, ...others } = options;
  const isShared = Object.keys(others).length === 0;
  const page = (isShared && takeFree(browser)) || (await browser.newPage({ viewport, ...others }));
  if (viewport !== null) await page.setViewportSize(viewport);
  page.setDefaultTimeout(300_000);
  const requests: string[] = [];
  const complaints: string[] = [];
  page.on("request", (request) => requests.push(request.url()));
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  return {
    page,
    requests,
    complaints,
    async [Symbol.asyncDispose]() {
      if (!isShared) return await page.close();
      for (const name of ["request", "console", "pageerror"]) page.removeAllListeners(name);
      await page.mouse.move(0, 0);
      await page.goto("about:blank");
      freePages.set(browser, page);
    },
  };
}

function takeFree(browser: Browser): Page | undefined {
  const page = freePages.get(browser);
  freePages.delete(browser);
  return page;
}

/** Serves runs' folders as `turnwright view` does. */
export async function serveRuns(
  ...dirs: readonly string[]
): Promise<AsyncDisposable & { readonly url: string }> {
  return await startViewer(await openRuns(dirs), { port: 0 });
}

/** Serves a run's folder with an engine that computes logprobs again. */
export async function serveRescored(
  dir: string,
  rescoring: Rescoring,
): Promise<AsyncDisposable & { readonly url: string }> {
  const catalog = await openRuns([dir]);
  const rescorings = new Map(catalog.runs.map((run) => [run, rescoring]));
  return await startViewer(catalog, { port: 0, rescorings });
}

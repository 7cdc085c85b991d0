// Takes the pictures of the viewer that README.md and docs/viewer.md show, of the run that `npm start`
// plays: node scripts/screenshots.mjs [RUN]. Needs Chromium (CHROMIUM names it; Debian: chromium).
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { build, isStale } from "./build.mjs";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const executablePath = process.env["CHROMIUM"] ?? "/usr/bin/chromium";
const width = 1440;
const height = 900;

if (!existsSync(executablePath)) {
  console.error(
    `Cannot take pictures: ${executablePath} is not there, name a Chromium in CHROMIUM`,
  );
  process.exit(2);
}
if (isStale()) await build();

const asked = process.argv[2];
const run = asked ?? playDemo();
const folder = placeRun(run);
if (asked === undefined) rmSync(path.dirname(run), { recursive: true });
const { startViewer } = await import("../dist/src/viewer/server.js");
const { openRuns } = await import("../dist/src/viewer/source/run-catalog.js");
// The page shows the paths of run and model; relative paths are the same on every machine.
process.chdir(folder);
const viewer = await startViewer(await openRuns(["runs/demo"]), { port: 0 });
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const target = path.join(root, "docs/pictures");
mkdirSync(target, { recursive: true });

const episode = `#/episode/demo/${encodeURIComponent("storefront/test/26#0")}`;
await shoot("run", "#/run/demo", "light");
await shoot("episode", `${episode}?turn=1&token=661`, "light");
await shoot("probability", `${episode}?turn=1&token=661&mode=logprob`, "dark");
await shoot("group", `#/group/demo/${encodeURIComponent("storefront/test/26")}`, "light");
await browser.close();
await viewer[Symbol.asyncDispose]();
rmSync(folder, { recursive: true });

async function shoot(file, link, colorScheme) {
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  await page.goto(viewer.url + link);
  await page.waitForLoadState("networkidle");
  await page.locator(".token, .list-row, .parting-text").first().waitFor();
  await page.screenshot({ path: path.join(target, `viewer-${file}.png`) });
  await page.close();
}

/** A folder with a copy of the run as `runs/demo`, and the model of the run next to it. */
function placeRun(run) {
  const place = mkdtempSync(path.join(tmpdir(), "turnwright-pictures-"));
  const copy = path.join(place, "runs/demo");
  cpSync(run, copy, { recursive: true });
  const file = path.join(copy, "run.json");
  const models = path.join(root, "models");
  const manifest = readFileSync(file, "utf8");
  const { model } = JSON.parse(manifest).found.settings;
  writeFileSync(file, manifest.replaceAll(path.dirname(model), "models"));
  symlinkSync(models, path.join(place, "models"));
  return place;
}

/** Plays the demo if no run is named. */
function playDemo() {
  const out = path.join(mkdtempSync(path.join(tmpdir(), "turnwright-pictures-")), "demo");
  const main = path.join(root, "dist/src/cli/main.js");
  const { status } = spawnSync(process.execPath, [main, "demo", "--out", out], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  if (status !== 0) process.exit(status ?? 1);
  return out;
}

// Runs a real inference server on this machine's CPU and plays storefront with it.
//
//   npm run interop -- llama-cpp|vllm|vllm-0.33|sglang [--episodes 64] [--skip kill-server,update] [--keep]
//   npm run interop -- vllm|vllm-0.33|sglang --weights [--keep]
//   npm run interop -- vllm|vllm-0.33|sglang --columns [--episodes 64] [--keep]
//
// With --weights, other weights are announced to the service in the middle of a batch, including wrong ones.
// With --columns, the server has a tiny mixture of experts, and returns the experts of each token. They are compared with
// those of transformers on the same ids, also after an update, an abort and a kill.
// The server is killed in the middle of --episodes episodes, but of 16 at least.
// Prints one JSON line a round. Exit status: 0 if all checks passed, 1 if one failed, 3 if the server cannot be
// installed here. The reason is on standard error.
import { AssertionError } from "node:assert";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { build, isStale } from "../scripts/build.mjs";
import { CannotInstall, install } from "./install.mjs";
import { findFreePort, startServer } from "./running-server.mjs";
import { servers } from "./servers.mjs";

const usage = `Usage: npm run interop -- ${Object.keys(servers).join("|")} [--episodes 64] [--skip ROUND,…] [--weights|--columns] [--keep]`;

const { values, positionals } = readArguments();
if (values.help) {
  console.log(usage);
  process.exit(0);
}
/** The rounds that can be skipped, each with the scoring of its episodes. */
const rounds = ["play", "kill-run", "abort", "update", "kill-server", "play exact"];

const server = servers[positionals[0] ?? ""];
const count = Number(values.episodes);
const skipped = values.skip === "" ? [] : values.skip.split(",");
const problem = findUsageProblem();
if (problem !== undefined) {
  console.error(`${problem}\n${usage}`);
  process.exit(2);
}
if (isStale()) await build();
const { abort, killRun, killServer, play, rescore, update } = await import("./rounds.mjs");
const weightRounds = await import("./weight-rounds.mjs");
const columnRounds = await import("./column-rounds.mjs");
const { startRouters } = await import("./compare-routes.mjs");

for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) {
  // Exits in an orderly way, so that no server keeps running.
  process.once(signal, () => process.exit(1));
}

const dir = mkdtempSync(path.join(tmpdir(), `turnwright-interop-${server.name}-`));
const logFile = path.join(dir, "server.log");

/** Reads the command line. Exits with status 2 on an unknown flag. */
function readArguments() {
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        episodes: { type: "string", default: "64" },
        skip: { type: "string", default: "" },
        keep: { type: "boolean", default: false },
        weights: { type: "boolean", default: false },
        columns: { type: "boolean", default: false },
        help: { type: "boolean", short: "h", default: false },
      },
    });
  } catch (error) {
    console.error(`${error.message}\n${usage}`);
    process.exit(2);
  }
}

/** Returns the problem of the requested combination, if any. */
function findUsageProblem() {
  if (server === undefined || positionals.length !== 1) return "Name one server";
  if (!Number.isInteger(count) || count < 1) {
    return `--episodes is ${values.episodes}, expected a whole number of at least 1`;
  }
  if (values.weights && server.updateWeights === undefined) {
    return `${server.name} cannot be given other weights`;
  }
  if (values.columns && server.hasColumns !== true) return `${server.name} returns no columns`;
  if (values.columns && values.weights) return "Choose one of --weights and --columns";
  const unknown = skipped.find((round) => !rounds.includes(round));
  return unknown && `There is no round ${unknown} to skip, only ${rounds.join(", ")}`;
}

/** Prints the result of a round. */
async function report(round, figures) {
  if (skipped.includes(toRound(round))) return;
  const line = { server: server.name, version: server.version, round, ...(await figures()) };
  console.log(JSON.stringify(line));
}

/** The round that another one needs: episodes that were not played cannot be scored again. */
function toRound(round) {
  if (round === "rescore") return "play";
  if (round === "rescore exact") return "play exact";
  if (round === "play completions" || round === "rescore completions") return "play";
  return round.replace(/^rescore /, "");
}

async function main() {
  mkdirSync(dir, { recursive: true });
  const folder = install(server);
  const port = await findFreePort();
  const startedAt = Date.now();
  let running = await startServer(server, { folder, port, logFile });
  const context = {
    server,
    dir,
    url: running.url,
    async restart(tag) {
      await running.stop();
      running = await startServer(server, { folder, port, tag, logFile });
    },
  };
  try {
    await report("start", async () => ({ seconds: (Date.now() - startedAt) / 1_000 }));
    await report("play", () => play(context, { count }));
    await report("rescore", () => rescore(context, {}));
    for (const flags of server.otherApis ?? []) {
      const name = flags.join("");
      await report(`play ${flags[1]}`, () => play(context, { count: 16, flags, name }));
      await report(`rescore ${flags[1]}`, () => rescore(context, { name }));
    }
    await report("kill-run", () => killRun(context));
    await report("abort", () => abort(context));
    if (server.updateWeights !== undefined) {
      await report("update", () => update(context));
      await report("rescore update", () => rescore(context, { name: "updated" }));
    }
    await report("kill-server", () => killServer(context, { count }));
    await report("rescore kill-server", () => rescore(context, { name: "server-killed" }));
    if (server.exact !== undefined) {
      await context.restart(server.exact.tag);
      await report("play exact", () => play(context, { count: 16, name: "exact" }));
      const limits = server.exact;
      await report("rescore exact", () => rescore(context, { name: "exact", limits }));
    }
  } finally {
    await running.stop();
  }
}

/** Announces other weights to the service while it plays. */
async function mainOfWeights() {
  const folder = install(server);
  const weights = weightRounds.prepare(dir);
  const port = await findFreePort();
  const startedAt = Date.now();
  const start = async () =>
    await startServer(server, { folder, port, model: weights.base, logFile });
  let running = await start();
  const context = {
    server,
    dir,
    url: running.url,
    weights,
    async restart() {
      await running.stop();
      running = await start();
    },
  };
  try {
    await report("start", async () => ({ seconds: (Date.now() - startedAt) / 1_000 }));
    const service = await weightRounds.startService(context);
    try {
      await report("announce", () => weightRounds.announce(context, service));
      await report("refuse", () => weightRounds.refuse(context, service));
      await report("lose", () => weightRounds.lose(context, service));
    } finally {
      await service.stop();
    }
    await report("give-back", () => weightRounds.giveBack(context));
    await report("dropped", () => weightRounds.dropped(context));
  } finally {
    await weightRounds.finish();
    await running.stop();
  }
}

/** Compares the routes of a tiny mixture of experts with transformers'. */
async function mainOfColumns() {
  const folder = install(server);
  const models = columnRounds.prepareModels(dir, folder);
  const port = await findFreePort();
  const startedAt = Date.now();
  const running = await startServer(server, {
    folder,
    port,
    tag: "columns",
    model: models.base,
    logFile,
  });
  const routers = startRouters(folder, (version) => (version === "2" ? models.next : models.base));
  const context = {
    server,
    dir,
    url: running.url,
    model: models.base,
    routesOf: routers.routesOf,
    update: columnRounds.updaterOf(server, running.url, models),
  };
  try {
    await report("start", async () => ({ seconds: (Date.now() - startedAt) / 1_000 }));
    await report("play", () => columnRounds.playColumns(context, { count }));
    await report("kill-run", () => columnRounds.killColumns(context));
    await report("abort", () => columnRounds.abortColumns(context));
    await report("update", () => columnRounds.updateColumns(context));
  } finally {
    routers.stop();
    await running.stop();
  }
}

try {
  await (values.weights ? mainOfWeights() : values.columns ? mainOfColumns() : main());
  if (!values.keep) rmSync(dir, { recursive: true });
} catch (error) {
  if (!(error instanceof CannotInstall)) {
    console.error(error instanceof AssertionError ? `Failed: ${error.message}` : error);
    console.error(`What was played and the server's log are in ${dir}`);
    process.exit(1);
  }
  console.error(`Cannot install ${server.name} ${server.version}: ${error.message}`);
  rmSync(dir, { recursive: true });
  process.exitCode = 3;
}

import type { Server } from "node:http";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { RolloutError, UsageError, describeError } from "../errors.ts";
import { listenAt, stopListening } from "../http/listen.ts";
import { isLocalAddress } from "../http/local-host.ts";
import { columnNames } from "../columns/column-specs.ts";
import type { RunFacts } from "./model/episode-entry.ts";
import { encodeRow } from "./model/row-columns.ts";
import { pageFiles, pageHtml, readPageFile } from "./page-files.ts";
import { rescoreRow, type Rescoring } from "./source/rescore-row.ts";
import { RowSource } from "./source/row-source.ts";
import { OpenColumns } from "../run/columns/open-columns.ts";
import { SideColumnSource } from "./source/side-column-source.ts";
import type { RunCatalog } from "./source/run-catalog.ts";
import { TeacherSource } from "./source/teacher-source.ts";
import type { RunIndex } from "./source/run-index.ts";

/** Options of the viewer's server. */
export interface ViewerOptions {
  /** The port to listen on. 0: any free port. */
  readonly port: number;
  /**
   * A model folder whose tokenizer reads the tokens' texts. Default: each run's own model folder.
   */
  readonly model?: string;
  /** The engines that recompute logprobs, by run. Absent if none is configured. */
  readonly rescorings?: ReadonlyMap<RunIndex, Rescoring>;
}

/** A running viewer, which only this machine can reach. */
export interface ViewerServer extends AsyncDisposable {
  readonly url: string;
}

/** The page loads nothing from other origins, cannot be framed, and is not cached. */
const headers: Readonly<Record<string, string>> = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
};

/**
 * Serves runs to a browser on this machine, read-only.
 * @throws UsageError if the port is in use.
 */
export async function startViewer(
  catalog: RunCatalog,
  { port, model, rescorings = new Map() }: ViewerOptions,
): Promise<ViewerServer> {
  const rows = new RowSource(model);
  const columns = new OpenColumns();
  const sideColumns = new SideColumnSource(rows, columns);
  const teachers = new TeacherSource(rows, columns);
  const app = viewerApp(catalog, { rows, sideColumns, teachers, rescorings });
  const server = createAdaptorServer({ fetch: app.fetch }) as Server;
  const taken = await listenAt(server, { host: "127.0.0.1", port }).catch((cause: unknown) => {
    const isTaken = (cause as NodeJS.ErrnoException).code === "EADDRINUSE";
    const what = isTaken ? "it is taken, choose another port" : describeError(cause);
    throw new UsageError(`Cannot listen on port ${port}: ${what}`, { cause });
  });
  if (!catalog.isFolder) for (const run of catalog.runs) void rows.warm(run);
  return {
    url: `http://127.0.0.1:${taken}/`,
    async [Symbol.asyncDispose]() {
      await stopListening(server);
      await columns[Symbol.asyncDispose]();
    },
  };
}

interface ViewerParts extends Required<Pick<ViewerOptions, "rescorings">> {
  readonly rows: RowSource;
  readonly sideColumns: SideColumnSource;
  readonly teachers: TeacherSource;
}

function viewerApp(
  catalog: RunCatalog,
  { rows, sideColumns, teachers, rescorings }: ViewerParts,
): Hono {
  const app = new Hono();
  app.use(async (context, next) => {
    // Refuses requests with another host name, because a foreign page could point its own name at
    // this address.
    const { host = "none", origin } = context.req.header();
    const isLocal = isLocalAddress(`http://${host}`);
    if (!isLocal || (origin !== undefined && !isLocalAddress(origin))) {
      return context.text("forbidden", 403);
    }
    await next();
    for (const [name, value] of Object.entries(headers)) context.header(name, value);
  });
  app.onError((error, context) => {
    if (error instanceof UsageError || error instanceof RolloutError)
      return context.json({ error: describeError(error) }, 422);
    throw error;
  });
  app.get("/", (context) => context.html(pageHtml()));
  for (const { name, type } of pageFiles) {
    app.get(`/${name}`, async (context) => {
      const bytes = new Uint8Array(await readPageFile(name));
      return context.body(bytes, 200, { "content-type": type });
    });
  }
  const factsOf = (run: RunIndex): RunFacts => ({
    ...run.facts,
    canRescore: rescorings.has(run),
  });
  app.get("/api/runs", async (context) => {
    await catalog.search();
    const runs = await catalog.overviews();
    return context.json({ runs, unreadable: catalog.unreadable });
  });
  const find = async (key: string): Promise<RunIndex> => await catalog.find(key);
  const binary = { "content-type": "application/octet-stream" };
  const json = { "content-type": "application/json; charset=utf-8" };
  app.get("/api/runs/:run/episodes", async (context) => {
    const run = await find(context.req.param("run"));
    await run.refresh();
    const { generation, from } = context.req.query();
    const start = Number(generation) === run.facts.generation ? Number(from) : 0;
    const entries = run.entries.slice(start);
    return context.json({ facts: factsOf(run), start, entries, running: run.running });
  });
  app.get("/api/runs/:run/about", async (context) =>
    context.json(await (await find(context.req.param("run"))).about()),
  );
  app.get("/api/runs/:run/versions", async (context) =>
    context.json(await (await find(context.req.param("run"))).versions()),
  );
  app.get("/api/runs/:run/search", async (context) => {
    const run = await find(context.req.param("run"));
    return context.json(await run.search(context.req.query("text") ?? ""));
  });
  app.get("/api/runs/:run/episode", async (context) => {
    const run = await find(context.req.param("run"));
    const id = context.req.query("id") ?? "";
    const line = await run.episodeLine(id);
    if (line !== undefined) return context.body(new Uint8Array(line), 200, json);
    const live = run.running.some(({ rolloutId }) => rolloutId === id)
      ? await run.recordings.episode(id)
      : undefined;
    return live === undefined
      ? context.json({ error: `${run.dir} has no episode ${id}` }, 404)
      : context.json(live);
  });
  app.get("/api/runs/:run/branches", async (context) => {
    const run = await find(context.req.param("run"));
    return context.json(await rows.branches(run, context.req.query("id") ?? ""));
  });
  app.get("/api/runs/:run/row", async (context) => {
    const run = await find(context.req.param("run"));
    const { id = "", row = "0", as } = context.req.query();
    const missing = { error: `${run.dir} has no training row ${row} of ${id}` };
    if (as === "line") {
      const line = await run.rowLine(id, Number(row));
      return line === undefined
        ? context.json(missing, 404)
        : context.body(new Uint8Array(line), 200, json);
    }
    const columns = await rows.read(run, id, Number(row));
    if (columns === undefined) return context.json(missing, 404);
    const rescoring = rescorings.get(run);
    if (as === "rescored" && rescoring !== undefined) {
      const scores = await rescoreRow(columns, rescoring);
      return context.body(new Uint8Array(scores.buffer as ArrayBuffer), 200, binary);
    }
    return context.body(encodeRow(columns) as Uint8Array<ArrayBuffer>, 200, binary);
  });
  app.get("/api/runs/:run/teachers", async (context) => {
    const { id = "", row = "0", token = "" } = context.req.query();
    const address = { rolloutId: id, row: Number(row) };
    const run = await find(context.req.param("run"));
    return context.json(await teachers.token(run, address, Number(token)));
  });
  addColumnRoutes(app, { find, sideColumns });
  return app;
}

/** Adds the routes of side columns: the values of one token, and the check of a row's column. */
function addColumnRoutes(
  app: Hono,
  {
    find,
    sideColumns,
  }: Pick<ViewerParts, "sideColumns"> & { readonly find: (key: string) => Promise<RunIndex> },
): void {
  app.get("/api/runs/:run/column/:name/:what", async (context) => {
    const { run: key, name, what } = context.req.param();
    const run = await find(key);
    const { id = "", row = "0", token = "" } = context.req.query();
    const known = columnNames.find((each) => each === name);
    const address = known && { rolloutId: id, row: Number(row), name: known };
    const found =
      address &&
      (what === "check"
        ? await sideColumns.check(run, address)
        : await sideColumns.token(run, address, Number(token)));
    if (found !== undefined) return context.json(found);
    const place = what === "check" ? "" : ` for token ${token}`;
    const error = `${run.dir} has no column ${name}${place} in row ${row} of ${id}`;
    return context.json({ error }, 404);
  });
}

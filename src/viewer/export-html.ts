import { createHash } from "node:crypto";
import { UsageError, assertInvariant } from "../errors.ts";
import type { StoredEpisodeRow } from "../run/folder/episode-row.ts";
import { encodeRow } from "./model/row-columns.ts";
import type { InlinedRun } from "./model/inlined-run.ts";
import { inlinedRunId } from "./model/inlined-run.ts";
import { withVersions } from "./model/lists/with-versions.ts";
import { readPageFile } from "./page-files.ts";
import type { RunIndex } from "./source/run-index.ts";
import { RowSource } from "./source/row-source.ts";

/** The episodes to export. */
interface ExportOptions {
  /** Ids of episodes, or their last parts, such as `7#3`. Empty: all episodes. */
  readonly wanted: readonly string[];
  /**
   * A model folder whose tokenizer reads the tokens' texts. Default: the run's own model folder.
   */
  readonly model?: string;
}

/** Maximum size of the training rows in one file, in bytes. A browser cannot open larger files. */
const maxRowBytes = 200_000_000;

/**
 * Returns one HTML file with episodes and their training rows. It opens without a server.
 * @throws UsageError if an episode does not exist, or if there are too many for one file.
 */
export async function exportHtml(
  run: RunIndex,
  { wanted, model }: ExportOptions,
): Promise<{ readonly html: string; readonly episodeCount: number }> {
  await run.refresh();
  const all = await run.versions();
  const aged = withVersions(run.entries, all);
  const entries =
    wanted.length === 0 ? aged : [...new Set(wanted.map((id) => aged[findEntry(run, id).order]!))];
  const episodes: Record<string, StoredEpisodeRow> = {};
  const rows: Record<string, readonly string[]> = {};
  const source = new RowSource(model);
  let size = 0;
  for (const { rolloutId } of entries) {
    const line = await run.episodeLine(rolloutId);
    episodes[rolloutId] = JSON.parse(line!.toString("utf8")) as StoredEpisodeRow;
    const own: string[] = [];
    for (let row = 0; row < run.rowSizes(rolloutId).length; row++) {
      const columns = await source.read(run, rolloutId, row);
      own.push(Buffer.from(encodeRow(columns!)).toString("base64"));
      size += own.at(-1)!.length;
      if (size > maxRowBytes) {
        throw new UsageError(
          `Cannot export ${entries.length} episodes into one file: they are too many for a browser, ` +
            "name fewer with --episode",
        );
      }
    }
    rows[rolloutId] = own;
  }
  const ids = new Set(entries.map(({ rolloutId }) => rolloutId));
  const versions = Object.fromEntries(Object.entries(all).filter(([id]) => ids.has(id)));
  const facts = { ...run.facts, episodeCount: entries.length };
  const about = await run.about();
  const only = wanted.length > 0 && entries.length === 1 ? entries[0]!.rolloutId : undefined;
  const opens = only === undefined ? {} : { opens: only };
  const inlined: InlinedRun = { facts, about, ...opens, entries, versions, episodes, rows };
  return { html: await inlinePage(inlined), episodeCount: entries.length };
}

function findEntry({ entries, dir }: RunIndex, wanted: string) {
  const found = entries.filter(
    ({ rolloutId, taskId }) =>
      rolloutId === wanted || taskId === wanted || rolloutId.endsWith(`/${wanted}`),
  );
  const exact = found.find(({ rolloutId }) => rolloutId === wanted) ?? found[0];
  if (exact !== undefined && (found.length === 1 || exact.rolloutId === wanted)) return exact;
  const what =
    found.length === 0 ? "no finished episode has this id" : `${found.length} episodes fit`;
  throw new UsageError(`Cannot export episode ${wanted} of ${dir}: ${what}`);
}

async function inlinePage(run: InlinedRun): Promise<string> {
  const [script, style] = await Promise.all(
    ["viewer.js", "viewer.css"].map(async (name) => (await readPageFile(name)).toString("utf8")),
  );
  // `</script` in the page's script would end its element.
  assertInvariant(!/<\/script/i.test(script!), "the page's script can stand in a page");
  const policy =
    `default-src 'none'; script-src '${hashOf(script!)}'; style-src '${hashOf(style!)}'; ` +
    "img-src data:; base-uri 'none'; form-action 'none'";
  // Within a script element, only a tag can end the text. In JSON, `<` can be written as an escape.
  const data = JSON.stringify(run).replaceAll("<", "\\u003c");
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Turnwright</title>
<link rel="icon" href="data:,">
<style>${style!}</style>
</head>
<body>
<script type="application/json" id="${inlinedRunId}">${data}</script>
<script>${script!}</script>
</body>
</html>
`;
}

function hashOf(text: string): string {
  return `sha256-${createHash("sha256").update(text).digest("base64")}`;
}

import { restoreStory } from "../../episode/stored-story.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { countHits } from "../model/lists/find-hits.ts";
import { inlinedRunId, type InlinedRun } from "../model/inlined-run.ts";
import { overviewOf } from "../model/lists/run-figures.ts";
import { findBranches, toBranchRow } from "../model/row-tree.ts";
import { decodeRow } from "../model/row-columns.ts";
import type { EpisodePlace, ViewerSource } from "./viewer-source.ts";

/** Reads the run in the page's own file. Returns `undefined` if the file has none. */
export function inlinedSource(): ViewerSource | undefined {
  const text = document.querySelector(`#${inlinedRunId}`)?.textContent;
  if (text === undefined || text === null) return undefined;
  const { facts, about, opens, entries, versions, episodes, rows } = JSON.parse(text) as InlinedRun;
  const rowsOf = ({ episode }: EpisodePlace): readonly string[] => rows[episode] ?? [];
  return {
    isLive: false,
    ...(opens !== undefined && { opens: { run: facts.key, episode: opens } }),
    runs: () => Promise.resolve({ runs: [overviewOf(facts, entries)], unreadable: [] }),
    about: () => Promise.resolve(about),
    episodes: () => Promise.resolve({ facts, start: 0, entries, running: [] }),
    versions: () => Promise.resolve(versions),
    search: (_, wanted) => Promise.resolve(countIn(episodes, wanted)),
    episode: async ({ episode }) =>
      restoreStory(await found(episodes[episode], episode)) as EpisodeRow,
    branches: (place) =>
      Promise.resolve(
        findBranches(
          rowsOf(place).map((row) => toBranchRow(decodeRow(fromBase64(row)))),
          episodes[place.episode],
        ),
      ),
    row: async (place, row) => decodeRow(fromBase64(await found(rowsOf(place)[row], "row"))),
  };
}

async function found<Value>(value: Value | undefined, name: string): Promise<Value> {
  if (value === undefined) throw new Error(`${name} is not in this file`);
  return await Promise.resolve(value);
}

function countIn(
  episodes: InlinedRun["episodes"],
  wanted: string,
): Readonly<Record<string, number>> {
  return Object.fromEntries(
    Object.entries(episodes)
      .map(([id, row]) => [id, countHits(restoreStory(row) as EpisodeRow, wanted)] as const)
      .filter(([, count]) => count > 0),
  );
}

function fromBase64(text: string): ArrayBuffer {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let index = 0; index < binary.length; index++) bytes[index] = binary.charCodeAt(index);
  return bytes.buffer;
}

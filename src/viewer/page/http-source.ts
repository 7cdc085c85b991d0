import { restoreStory } from "../../episode/stored-story.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import type { LiveEpisode } from "../model/live-episode.ts";
import { decodeRow } from "../model/row-columns.ts";
import type { ColumnPlace, EpisodePage, EpisodePlace, ViewerSource } from "./viewer-source.ts";

/** Creates a source that reads from the page's server. */
export function httpSource(): ViewerSource {
  return {
    isLive: true,
    runs: () => getJson("api/runs"),
    about: (run) => getJson(runPath(run, "about")),
    episodes: (run, { generation, from }) =>
      getJson<EpisodePage>(runPath(run, "episodes", { generation, from })),
    versions: (run) => getJson(runPath(run, "versions")),
    search: (run, text) => getJson(runPath(run, "search", { text })),
    episode: async ({ run, episode }) => {
      const line = await getJson<unknown>(runPath(run, "episode", { id: episode }));
      return restoreStory(line) as EpisodeRow | LiveEpisode;
    },
    branches: ({ run, episode }) => getJson(runPath(run, "branches", { id: episode })),
    row: async (place, row) => {
      const response = await get(rowPath(place, row));
      return decodeRow(await response.arrayBuffer());
    },
    rescored: async (place, row) => {
      const response = await get(`${rowPath(place, row)}&as=rescored`);
      return new Float64Array(await response.arrayBuffer());
    },
    tokenColumn: (place, column, token) => getJson(columnPath(place, column, "token", { token })),
    columnCheck: (place, column) => getJson(columnPath(place, column, "check")),
    teacherToken: ({ run, episode }, row, token) =>
      getJson(runPath(run, "teachers", { id: episode, row, token })),
    rowLine: async (place, row) => await (await get(`${rowPath(place, row)}&as=line`)).blob(),
  };
}

function rowPath({ run, episode }: EpisodePlace, row: number): string {
  return runPath(run, "row", { id: episode, row });
}

function columnPath(
  { run, episode }: EpisodePlace,
  { row, name }: ColumnPlace,
  what: "token" | "check",
  asked: Readonly<Record<string, number>> = {},
): string {
  return runPath(run, `column/${name}/${what}`, { id: episode, row, ...asked });
}

function runPath(
  run: string,
  what: string,
  asked: Readonly<Record<string, string | number>> = {},
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(asked)) query.set(name, String(value));
  return `api/runs/${encodeURIComponent(run)}/${what}?${query.toString()}`;
}

async function getJson<Value>(path: string): Promise<Value> {
  return (await (await get(path)).json()) as Value;
}

/**
 * Requests a path from the server.
 * @throws Error with the server's message.
 */
async function get(path: string): Promise<Response> {
  const response = await fetch(path);
  if (response.ok) return response;
  const text = await response.text();
  let message: string | undefined;
  try {
    message = (JSON.parse(text) as { readonly error?: string }).error;
  } catch {
    // The reply is not JSON and is shown unchanged.
  }
  throw new Error(message ?? `${response.status} ${text}`);
}

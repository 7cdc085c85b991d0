import type { ColumnName, ColumnSpecs } from "../../columns/column-specs.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import type { AboutRun } from "../model/about-run.ts";
import type { EpisodeEntry, RunFacts } from "../model/episode-entry.ts";
import type { LiveEntry, LiveEpisode } from "../model/live-episode.ts";
import { withVersions } from "../model/lists/with-versions.ts";
import { linkTo, readRoute, type Route } from "../model/route.ts";
import { RowView } from "../model/row-view.ts";
import type { RowBranch } from "../model/row-tree.ts";
import type { ColumnCheck, TokenColumn } from "../model/side-columns.ts";
import type { TeacherToken } from "../model/teacher-token.ts";
import type { SearchResult } from "../model/search-tokens.ts";
import type { ColumnPlace, EpisodePlace, RunsPage, ViewerSource } from "./viewer-source.ts";

/** A value that is loading, ready or failed. */
export type Loaded<Value> =
  | { readonly state: "loading" }
  | { readonly state: "ready"; readonly value: Value }
  | { readonly state: "failed"; readonly message: string };

/** A run's list of episodes, as read so far. */
export interface EpisodeList {
  readonly facts: RunFacts;
  readonly entries: readonly EpisodeEntry[];
  /** The running episodes. */
  readonly running: readonly LiveEntry[];
}

type RunRoute = Extract<Route, { page: "run" }>;

/** A search through all conversations of a run. */
interface TextSearch {
  readonly run: string;
  readonly text: string;
  /** The number of finished episodes when the search began. */
  readonly episodeCount: number;
  /** The number of hits by episode. Absent until the search has ended. */
  readonly found?: ReadonlyMap<string, number>;
}

/** A search in the shown row. */
interface TokenSearch {
  readonly query: string;
  readonly view: RowView;
  readonly result: SearchResult;
  /** The index of the current match. */
  readonly at: number;
}

/** The panels beside the conversation. */
export const episodeTabs = ["tokens", "time", "details"] as const;

/** The name of a panel. */
type EpisodeTab = (typeof episodeTabs)[number];

/** Maximum number of rows in memory, because rows are large. */
const keptRows = 10;

/** Maximum number of tokens' values of side columns in memory. */
const keptTokenColumns = 100;

const livePauseMs = { running: 700, still: 2_500 } as const;

/**
 * The state of the page, with the functions that change it. A change redraws the page in the next
 * frame.
 */
export class ViewerApp {
  readonly source: ViewerSource;
  route: Route;
  runs: Loaded<RunsPage> = { state: "loading" };
  readonly lists = new Map<string, Loaded<EpisodeList>>();
  tab: EpisodeTab = "tokens";
  /** The part of an episode that a narrow window shows: the conversation if true, the chosen `tab` if false. */
  isConversation = true;
  /** The side columns that are open below the tokens. */
  readonly openColumns = new Set<ColumnName>();
  search: TokenSearch | undefined;
  /** The last search through all conversations of a run. */
  #textSearch: TextSearch | undefined;
  /** The last list of each run, with its filter, search and order. */
  readonly #lastLists = new Map<string, RunRoute>();
  /** The width of the window, in pixels. */
  width = innerWidth;
  isHelpOpen = false;
  /** A message for screen readers, which is also shown for a moment. */
  notice = "";
  /** Texts and messages that the user has expanded, with the number of characters shown. */
  readonly opened = new Map<string, number>();
  readonly #loaded = new Map<string, Loaded<unknown>>();
  readonly #draw: () => void;
  #isDrawing = false;
  #noticeTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(source: ViewerSource, draw: (app: ViewerApp) => void) {
    this.source = source;
    this.#draw = () => draw(this);
    this.route = readRoute(location.hash);
    if (this.route.page === "run") this.#lastLists.set(this.route.run, this.route);
  }

  async start(): Promise<void> {
    addEventListener("resize", () => {
      this.width = innerWidth;
      this.update();
    });
    addEventListener("hashchange", () => this.#follow(readRoute(location.hash)));
    this.update();
    try {
      const found = await this.source.runs();
      this.runs = { state: "ready", value: found };
      const [only, ...others] = found.runs;
      if (only !== undefined && others.length === 0 && this.route.page === "runs") {
        const { opens } = this.source;
        const first = opens && episodeRoute(opens.run, opens.episode);
        this.go(first ?? runRoute(only.facts.key), { replace: true });
      }
    } catch (error) {
      this.runs = { state: "failed", message: messageOf(error) };
    }
    this.update();
    if (this.source.isLive) void this.#followRuns();
  }

  /** Schedules a redraw. */
  update(): void {
    if (this.#isDrawing) return;
    this.#isDrawing = true;
    queueMicrotask(() => {
      this.#isDrawing = false;
      this.#draw();
    });
  }

  go(route: Route, { replace = false }: { readonly replace?: boolean } = {}): void {
    const link = linkTo(route);
    if (link !== location.hash) {
      if (replace) history.replaceState(null, "", link);
      else history.pushState(null, "", link);
    }
    this.#follow(route);
  }

  note(text: string): void {
    this.notice = text;
    clearTimeout(this.#noticeTimer);
    this.#noticeTimer = setTimeout(() => {
      this.notice = "";
      this.update();
    }, 2_500);
    this.update();
  }

  /** Returns the list of a run. The first call starts to read it. */
  list(run: string): Loaded<EpisodeList> {
    const known = this.lists.get(run);
    if (known !== undefined) return known;
    this.lists.set(run, { state: "loading" });
    void this.#readList(run);
    return { state: "loading" };
  }

  episode(place: EpisodePlace): Loaded<EpisodeRow | LiveEpisode> {
    return this.#load(episodeKey(place), () => this.source.episode(place));
  }

  branches(place: EpisodePlace): Loaded<readonly RowBranch[]> {
    return this.#load(`branches ${place.run} ${place.episode}`, () => this.source.branches(place));
  }

  /** Returns a run's settings and summary. The first call starts to read them. */
  about(run: string): Loaded<AboutRun> {
    return this.#load(aboutKey(run), () => this.source.about(run));
  }

  row(place: EpisodePlace, row: number): Loaded<RowView> {
    const key = rowKey(place, row);
    this.#makeRoom(key, "row ", keptRows);
    return this.#load(key, async () => new RowView(await this.source.row(place, row)));
  }

  /** True if the logprobs of a run can be computed again. */
  canRescore(run: string): boolean {
    const list = this.list(run);
    return list.state === "ready" && list.value.facts.canRescore === true;
  }

  /** Returns the lowest reward of a success, if the viewer was started with one. */
  successThreshold(run: string): number | undefined {
    const list = this.list(run);
    return list.state === "ready" ? list.value.facts.successThreshold : undefined;
  }

  /** Returns the run's side columns, if it has any. */
  columnSpecs(run: string): ColumnSpecs | undefined {
    const list = this.list(run);
    return list.state === "ready" ? list.value.facts.columns : undefined;
  }

  /** Returns a side column's values for a token. The first call starts to read them. */
  tokenColumn(place: EpisodePlace, { row, name }: ColumnPlace, token: number): Loaded<TokenColumn> {
    const key = `column ${name} ${token} ${rowKey(place, row)}`;
    this.#makeRoom(key, "column ", keptTokenColumns);
    return this.#load(key, () => this.source.tokenColumn!(place, { row, name }, token));
  }

  /** Returns the names of the run's teachers. */
  teachers(run: string): readonly string[] {
    const list = this.list(run);
    return (list.state === "ready" && list.value.facts.teachers) || [];
  }

  /** Returns the columns of the run's teachers for a token. The first call starts to read them. */
  teacherToken(place: EpisodePlace, row: number, token: number): Loaded<readonly TeacherToken[]> {
    const key = `teachers ${token} ${rowKey(place, row)}`;
    this.#makeRoom(key, "teachers ", keptTokenColumns);
    return this.#load(key, () => this.source.teacherToken!(place, row, token));
  }

  /** Returns the result of a side column's check. The first call starts it. */
  columnCheck(place: EpisodePlace, { row, name }: ColumnPlace): Loaded<ColumnCheck> {
    return this.#load(`check ${name} ${rowKey(place, row)}`, () =>
      this.source.columnCheck!(place, { row, name }),
    );
  }

  /**
   * Returns the recomputed logprobs of a row. The first call starts to compute them, and the row
   * keeps them.
   */
  rescored(place: EpisodePlace, row: number): Loaded<Float64Array> {
    return this.#load(`rescored ${place.run} ${place.episode} ${row}`, async () => {
      const scores = await this.source.rescored?.(place, row);
      if (scores === undefined) throw new Error("no engine is at hand that could score");
      return scores;
    });
  }

  /** Returns the text that is marked in the shown episode, or "". */
  get find(): string {
    return this.route.page === "episode" ? (this.route.find ?? "") : "";
  }

  /** Returns the route to the list of a run as it was last seen. */
  lastList(run: string): RunRoute {
    return this.#lastLists.get(run) ?? runRoute(run);
  }

  /**
   * Returns the number of hits of a list's search, by episode. The first call starts the search, and so does a call
   * with another number of episodes. `undefined` without a search, and until it has ended.
   */
  hits(
    { run, search: text }: RunRoute,
    episodeCount: number,
  ): ReadonlyMap<string, number> | undefined {
    if (text === "") return undefined;
    const known = this.#textSearch;
    const isSame = known?.run === run && known.text === text;
    if (isSame && known.episodeCount === episodeCount) return known.found;
    const next = { run, text, episodeCount, ...(isSame && known.found && { found: known.found }) };
    this.#textSearch = next;
    void this.#searchTexts(next);
    return next.found;
  }

  async #searchTexts(asked: TextSearch): Promise<void> {
    try {
      const found = await this.source.search(asked.run, asked.text);
      if (this.#textSearch !== asked) return;
      this.#textSearch = { ...asked, found: new Map(Object.entries(found)) };
    } catch (error) {
      this.note(`cannot search: ${messageOf(error)}`);
    }
    this.update();
  }

  #follow(route: Route): void {
    this.route = route;
    if (route.page === "run") this.#lastLists.set(route.run, route);
    this.update();
  }

  /** Forgets the oldest value whose key has the prefix, if `key` is new and there are `kept` of them. */
  #makeRoom(key: string, prefix: string, kept: number): void {
    if (this.#loaded.has(key)) return;
    const known = [...this.#loaded.keys()].filter((other) => other.startsWith(prefix));
    if (known.length >= kept) this.#loaded.delete(known[0]!);
  }

  #load<Value>(key: string, read: () => Promise<Value>): Loaded<Value> {
    const known = this.#loaded.get(key);
    if (known !== undefined) return known as Loaded<Value>;
    this.#loaded.set(key, { state: "loading" });
    read().then(
      (value) => this.#settle(key, { state: "ready", value }),
      (error: unknown) => this.#settle(key, { state: "failed", message: messageOf(error) }),
    );
    return { state: "loading" };
  }

  #settle(key: string, loaded: Loaded<unknown>): void {
    this.#loaded.set(key, loaded);
    this.update();
  }

  async #readList(run: string): Promise<void> {
    const before = this.lists.get(run);
    const known = before?.state === "ready" ? before.value : undefined;
    try {
      const page = await this.source.episodes(run, {
        generation: known?.facts.generation ?? -1,
        from: known?.entries.length ?? 0,
      });
      const kept = known?.entries.slice(0, page.start) ?? [];
      const isSame =
        known !== undefined &&
        page.entries.length === 0 &&
        sameFacts(known.facts, page.facts) &&
        sameParts(known.running, page.running);
      if (isSame) return;
      // Requests that failed may succeed now, because rows may have been added or moved.
      if (known !== undefined) this.#forgetFailures();
      // The summary is written at the run's end.
      if (known !== undefined && known.facts.state !== page.facts.state) {
        this.#loaded.delete(aboutKey(run));
      }
      const { facts, running } = page;
      const list = { facts, running, entries: [...kept, ...page.entries] };
      this.lists.set(run, { state: "ready", value: list });
      this.update();
      const entries = withVersions(list.entries, await this.source.versions(run));
      this.lists.set(run, { state: "ready", value: { ...list, entries } });
    } catch (error) {
      if (known !== undefined) return;
      this.lists.set(run, { state: "failed", message: messageOf(error) });
    }
    this.update();
  }

  /** Reads the list of runs again. Keeps the earlier list if the server does not answer. */
  async #readRuns(): Promise<void> {
    try {
      this.runs = { state: "ready", value: await this.source.runs() };
      this.update();
    } catch {
      // The viewer was stopped, or starts again.
    }
  }

  #forgetFailures(): void {
    for (const [key, { state }] of this.#loaded) {
      if (state === "failed") this.#loaded.delete(key);
    }
  }

  /** Reads appended data of the shown runs repeatedly. */
  async #followRuns(): Promise<void> {
    for (;;) {
      const shown = runsOf(this.route).flatMap((run) => {
        const list = this.lists.get(run);
        return list?.state === "ready" ? [list.value.facts] : [];
      });
      const isRunning = shown.some(({ state }) => state === "running");
      await new Promise((resolve) => {
        setTimeout(resolve, isRunning ? livePauseMs.running : livePauseMs.still);
      });
      if (document.hidden) continue;
      for (const { key } of shown) await this.#readList(key);
      if (this.route.page === "runs") await this.#readRuns();
      await this.#followEpisode();
    }
  }

  /** Reads the shown episode again while it is being played, and once more after its end. */
  async #followEpisode(): Promise<void> {
    const { route } = this;
    if (route.page !== "episode") return;
    const known = this.#loaded.get(episodeKey(route)) as
      | Loaded<EpisodeRow | LiveEpisode>
      | undefined;
    if (known?.state !== "ready" || !("isLive" in known.value)) return;
    try {
      const value = await this.source.episode(route);
      const isOver = !("isLive" in value);
      if (!isOver && value.partCount === known.value.partCount) return;
      const view = new RowView(await this.source.row(route, 0));
      this.#loaded.set(rowKey(route, 0), { state: "ready", value: view });
      this.#loaded.set(episodeKey(route), { state: "ready", value });
      this.#loaded.delete(`branches ${route.run} ${route.episode}`);
      // The finished row begins with the prompt, so token indexes of the running episode are
      // invalid.
      if (isOver && this.route === route) {
        const { token: _token, ...rest } = route;
        this.go(rest, { replace: true });
      }
    } catch {
      // The recording has ended, but the episode's line is not written yet. The next call reads it.
    }
    this.update();
  }
}

/** Returns the route to the unfiltered list of a run. */
export function runRoute(run: string): RunRoute {
  return { page: "run", run, filter: "", order: "", view: "episodes", search: "" };
}

/** Returns the route to the beginning of an episode. */
export function episodeRoute(run: string, episode: string): Extract<Route, { page: "episode" }> {
  return { page: "episode", run, episode, row: 0, mode: "mask" };
}

/** Returns the route to the unfiltered list of runs. */
export function runsRoute(): Extract<Route, { page: "runs" }> {
  return { page: "runs", filter: "", order: "" };
}

/** Returns the names of the runs that a page shows in detail. */
function runsOf(route: Route): readonly string[] {
  if (route.page === "runs") return [];
  return route.page === "compare" ? [route.run, route.other] : [route.run];
}

function aboutKey(run: string): string {
  return `about ${run}`;
}

function episodeKey({ run, episode }: EpisodePlace): string {
  return `episode ${run} ${episode}`;
}

function rowKey({ run, episode }: EpisodePlace, row: number): string {
  return `row ${run} ${episode} ${row}`;
}

function sameParts(left: readonly LiveEntry[], right: readonly LiveEntry[]): boolean {
  return (
    left.length === right.length &&
    left.every(({ rolloutId, partCount }, index) => {
      const other = right[index]!;
      return rolloutId === other.rolloutId && partCount === other.partCount;
    })
  );
}

function sameFacts(left: RunFacts, right: RunFacts): boolean {
  return left.state === right.state && left.generation === right.generation;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

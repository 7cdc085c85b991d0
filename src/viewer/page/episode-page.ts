import { html, nothing, type TemplateResult } from "lit/html.js";
import { differenceOf } from "../../environment/state/difference.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { flattenValue } from "../model/flatten-value.ts";
import { isForkOfOther, type EpisodeEntry } from "../model/episode-entry.ts";
import type { LiveEpisode } from "../model/live-episode.ts";
import type { Route } from "../model/route.ts";
import type { RowView } from "../model/row-view.ts";
import { linkTo } from "../model/route.ts";
import { visibleText } from "../model/visible-text.ts";
import { branchTree } from "./branch-tree.ts";
import { conversation } from "./conversation.ts";
import { liveConversation } from "./live-conversation.ts";
import { componentTable } from "./component-table.ts";
import { choice, endOf, isPlayed, rewardBadge, whenReady } from "./parts.ts";
import { timeTable } from "./time-lanes.ts";
import { tokenPanel } from "./token-panel.ts";
import { valueTable } from "./value-table.ts";
import { verdictPanel } from "./verdict-panel.ts";
import { episodeRoute, type Loaded, type ViewerApp } from "./viewer-app.ts";

type EpisodeRoute = Extract<Route, { page: "episode" }>;

/** Returns the training row that an episode's page shows. */
export function shownRow(app: ViewerApp, route: EpisodeRoute): Loaded<RowView> {
  return app.row(route, route.row);
}

/** Renders an episode: the reasons for its reward, its conversation and its tokens. */
export function episodePage(app: ViewerApp, route: EpisodeRoute): TemplateResult {
  return html`<div class="episode-page">
    ${attempts(app, route)}
    ${whenReady(app.episode(route), (row) => {
      if ("isLive" in row) return livePage(app, route, row);
      return html`${verdictPanel(app, route.run, row)} ${forkNote(app, route, row)}
      ${sides(app, conversationSide(app, route, row), () => rightSide(app, route, row))}`;
    })}
  </div>`;
}

function conversationSide(app: ViewerApp, route: EpisodeRoute, row: EpisodeRow): TemplateResult {
  return conversation(row, {
    app,
    selectedTurn: route.turn,
    ...branchesOf(app, route),
    ...shownTextOf(app, route, row),
    onSelect: (turn, span) => selectTurn(app, route, turn, span),
  });
}

/** The width up to which a window shows either the conversation or the tokens, in pixels. */
const narrowWidth = 900;

/** Renders the conversation and the panel beside it. A narrow window shows one of them. */
function sides(
  app: ViewerApp,
  left: TemplateResult,
  drawRight: () => TemplateResult,
): TemplateResult {
  const conversation = html`<section class="side" aria-label="conversation">${left}</section>`;
  if (app.width > narrowWidth) {
    return html`<div class="sides">
      ${conversation}
      <section class="side side-tokens">${drawRight()}</section>
    </div>`;
  }
  const { isConversation } = app;
  const show = (next: boolean) => () => (app.isConversation = next);
  return html`<div class="choices narrow-tabs" role="group" aria-label="shown part">
      ${choice(app, { label: "Conversation", isOn: isConversation, choose: show(true) })}
      ${choice(app, { label: "Tokens and more", isOn: !isConversation, choose: show(false) })}
    </div>
    <div class="sides">
      ${isConversation ? conversation : html`<section class="side side-tokens">${drawRight()}</section>`}
    </div>`;
}

const messagesOnly = "the engine returns messages without token ids.";

/** True if no episode of the run has rows. */
function isWithoutRows(app: ViewerApp, { run }: EpisodeRoute): boolean {
  const list = app.list(run);
  return list.state === "ready" && list.value.facts.hasNoRows === true;
}

function whyNoRow({ counts }: Pick<EpisodeRow, "counts">): string {
  return counts.turnCount > 0
    ? messagesOnly
    : "the episode ended before anything was sampled, and nothing of it is trained.";
}

/** True if no row of the episode is in `samples.jsonl`. */
function hasNoRow({ counts }: Pick<EpisodeRow, "counts">): boolean {
  return counts.tokenCount === 0;
}

function branchesOf(app: ViewerApp, route: EpisodeRoute) {
  const branches = app.branches(route);
  return branches.state === "ready" ? { branches: branches.value } : {};
}

/** Describes the fork point of a fork. */
function forkNote(app: ViewerApp, { run }: EpisodeRoute, { forkedFrom }: EpisodeRow) {
  if (forkedFrom === undefined) return nothing;
  const { rolloutId, turnIndex } = forkedFrom;
  const link = linkTo({ ...episodeRoute(run, rolloutId), turn: turnIndex });
  const list = app.list(run);
  const name = visibleText(rolloutId);
  return html`<p class="fork-note">
    A fork of
    ${
      list.state === "ready" && isForkOfOther(list.value.facts)
        ? html`${name} of the run that it was forked from,`
        : html`<a href=${link}>${name}</a>`
    }
    from turn ${turnIndex} on: the turns before it are part of its prompt, and are trained there.
  </p>`;
}

/** Returns the text of a turn's tokens, if they are in the shown row. */
function shownTextOf(app: ViewerApp, route: EpisodeRoute, row: EpisodeRow) {
  const view = hasNoRow(row) ? undefined : shownRow(app, route);
  if (view?.state !== "ready") return {};
  const { header, texts } = view.value;
  return {
    tokenText: (wanted: number): string | undefined => {
      const turn = header.turns.find(({ turnIndex }) => turnIndex === wanted);
      return turn && texts.slice(turn.start, turn.end);
    },
  };
}

/** Renders a running episode: the turns and answers so far. */
function livePage(app: ViewerApp, route: EpisodeRoute, live: LiveEpisode): TemplateResult {
  const isOn = isPlayed(app, route.run);
  const [later, missing] = isWithoutRows(app, route)
    ? ["the opening follows", "the opening is not"]
    : [
        "the prompt and the environment's tokens follow",
        "the prompt and the environment's tokens are not",
      ];
  const turns = `${live.turnCount} ${live.turnCount === 1 ? "turn" : "turns"}`;
  return html`<section class="verdict" aria-label=${isOn ? "being played" : "not finished"}>
      <div class="verdict-words">
        <h1>
          ${
            isOn
              ? `Being played: ${turns} so far`
              : `Not finished: ${turns} ${live.turnCount === 1 ? "was" : "were"} recorded`
          }
        </h1>
        <p class="ending">
          Attempt
          ${live.attempt}.${
            isOn
              ? ` Shown is what is recorded as it happens; ${later} when the episode ends.`
              : ` The run ended before it did, and nothing of it is trained. Shown is what was
                recorded; ${missing}.`
          }
        </p>
      </div>
    </section>
    ${whenReady(shownRow(app, route), (view) =>
      sides(
        app,
        liveConversation(app, { run: route.run, live, view, selectedTurn: route.turn }, (turn) =>
          selectTurn(app, route, turn),
        ),
        () =>
          isWithoutRows(app, route)
            ? html`<p class="waiting">There is no training row: ${messagesOnly}</p>`
            : tokenPanel(app, { route, view }),
      ),
    )}`;
}

/** Selects a turn, and its first token or the first token of a span. */
export function selectTurn(
  app: ViewerApp,
  route: EpisodeRoute,
  turnIndex: number,
  span: readonly [number, number] = [0, 0],
): void {
  const { token: _token, ...rest } = route;
  const branches = app.branches(route);
  const holders =
    branches.state === "ready"
      ? branches.value.filter(({ turnIndexes }) => turnIndexes.includes(turnIndex))
      : [];
  const isHere = holders.length === 0 || holders.some(({ row }) => row === route.row);
  const row = isHere ? route.row : holders[0]!.row;
  const view = shownRow(app, { ...route, row });
  const turn =
    view.state === "ready"
      ? view.value.header.turns.find((other) => other.turnIndex === turnIndex)
      : undefined;
  const token = turn === undefined ? {} : { token: turn.start + span[0] };
  app.go({ ...rest, row, turn: turnIndex, ...token }, { replace: true });
}

/** Renders the list of other attempts at the same task. */
function attempts(app: ViewerApp, route: EpisodeRoute): TemplateResult {
  const list = app.list(route.run);
  const entries = list.state === "ready" ? list.value.entries : [];
  const own = entries.find(({ rolloutId }) => rolloutId === route.episode);
  const siblings = entries
    .filter(({ groupId }) => groupId === own?.groupId)
    .toSorted((left, right) => left.sampleIndex - right.sampleIndex);
  return html`<nav class="attempts" aria-label="attempts at this task">
    <span class="episode-id">${visibleText(route.episode)}</span>
    ${
      siblings.length < 2 || own === undefined
        ? nothing
        : html`<span class="faint">attempts</span>
            ${siblings.map((entry) => attemptLink(route, entry))}
            <a
              class="button"
              href=${linkTo({ page: "group", run: route.run, group: own.groupId, base: own.sampleIndex })}
              >side by side <kbd>g</kbd></a
            >`
    }
    ${own === undefined ? nothing : html`<span class="end">${endOf(own)}</span>`}
    <span class="downloads">
      ${
        app.source.rowLine === undefined || own === undefined || own.tokenCount === 0
          ? nothing
          : html`<button type="button" @click=${() => void downloadRow(app, route)}>
              download the row
            </button>`
      }
    </span>
  </nav>`;
}

function attemptLink(route: EpisodeRoute, entry: EpisodeEntry) {
  const { rolloutId, sampleIndex } = entry;
  const isOwn = rolloutId === route.episode;
  const { find } = route;
  const other = { ...episodeRoute(route.run, rolloutId), ...(find !== undefined && { find }) };
  return html`<a href=${linkTo(other)} aria-current=${isOwn ? "page" : nothing}
    >#${sampleIndex} ${rewardBadge(entry)}</a
  >`;
}

async function downloadRow(app: ViewerApp, route: EpisodeRoute): Promise<void> {
  const blob = await app.source.rowLine?.(route, route.row);
  if (blob === undefined) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `${route.episode.replaceAll(/[^\w.#-]+/g, "_")}.${route.row}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  app.note(`saved ${link.download}`);
}

function rightSide(app: ViewerApp, route: EpisodeRoute, row: EpisodeRow): TemplateResult {
  const tab = (name: ViewerApp["tab"], label: string) =>
    choice(app, { label, isOn: app.tab === name, choose: () => (app.tab = name) });
  return html`<div class="tabs">
      <div class="choices" role="group" aria-label="beside the conversation">
        ${tab("tokens", "Tokens")} ${tab("time", "Time")} ${tab("details", "Reward details")}
      </div>
    </div>
    ${branchTree(app, route, row)}
    ${
      app.tab === "time"
        ? timeTable(row, (turn) => selectTurn(app, route, turn))
        : app.tab === "details"
          ? details(app, row)
          : hasNoRow(row)
            ? html`<p class="waiting">There is no training row: ${whyNoRow(row)}</p>`
            : whenReady(shownRow(app, route), (view) => {
                view.noteInterruptions(row.turns);
                return tokenPanel(app, { route, view });
              })
    }`;
}

function details(app: ViewerApp, row: EpisodeRow): TemplateResult {
  const { rewardDetails = {}, turnRewards, counts, userUsage, failure, troubles } = row;
  const { difference, ...others } = rewardDetails;
  const parts = {
    // The difference stands at the top of the page.
    "details of the score":
      differenceOf(rewardDetails) === undefined ? { ...others, difference } : others,
    "rewards of the turns": turnRewards,
    failure,
    troubles,
    counts,
    "user's model": userUsage.callCount === 0 ? undefined : userUsage,
  };
  return html`<div class="details" tabindex="0" role="region" aria-label="reward details">
    ${
      row.rewardComponents === undefined
        ? nothing
        : html`<h2>components of the reward</h2>
            ${componentTable(row.rewardComponents)}`
    }
    ${Object.entries(parts)
      .filter(([, value]) => flattenValue(value).values.length > 0)
      .map(
        ([name, value]) =>
          html`<h2>${name}</h2>
            ${valueTable(app, `details ${name}`, value)}`,
      )}
  </div>`;
}

import { html, nothing, type TemplateResult } from "lit/html.js";
import { countOf } from "../../text/count-of.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { shownSteps } from "../../episode/turn/shown-steps.ts";
import { isForkOfOther, type EpisodeEntry } from "../model/episode-entry.ts";
import { firstDifference } from "../model/first-difference.ts";
import { groupEpisodes, type GroupEntry } from "../model/lists/group-entry.ts";
import { linkTo, type Route } from "../model/route.ts";
import type { RowView } from "../model/row-view.ts";
import { visibleText } from "../model/visible-text.ts";
import { verdictOf } from "../model/verdict.ts";
import { longText } from "./long-text.ts";
import { endOf, formatDuration, formatNumber, rewardBadge, whenReady } from "./parts.ts";
import { turnText } from "./turn-text.ts";
import { episodeRoute, type ViewerApp } from "./viewer-app.ts";

type GroupRoute = Extract<Route, { page: "group" }>;

/**
 * Renders the attempts at one task side by side. Marks the token at which each differs from the
 * chosen one.
 */
export function groupPage(app: ViewerApp, route: GroupRoute): TemplateResult {
  return whenReady(app.list(route.run), ({ entries }) => {
    const members = entries.filter(({ groupId }) => groupId === route.group);
    const [group] = groupEpisodes(members);
    if (group === undefined) return html`<p class="broken">There is no such group.</p>`;
    const base = comparedAttempt(group, route);
    return html`<div class="group-page">
      <header class="group-head">
        <h1>${visibleText(route.group)}</h1>
        <p>
          ${countOf(group.attempts.length, "attempt")},
          ${
            group.mean === undefined
              ? "none of them scored"
              : `mean reward ${group.mean.toFixed(3)}, spread ${group.spread!.toFixed(3)}`
          }.
          ${
            group.isDegenerate
              ? html`<b class="degenerate"
                  >All rewards are equal: advantages within the group are 0.</b
                >`
              : nothing
          }
          <span class="faint"
            >Compared with attempt #${base.sampleIndex}; choose another by its number.</span
          >
        </p>
      </header>
      <div class="columns">
        ${group.attempts.map((entry) => column(app, route, { entry, base }))}
      </div>
    </div>`;
  });
}

/**
 * Returns the attempt with which the others are compared: the one with the number in the route, or
 * the first.
 */
export function comparedAttempt({ attempts }: GroupEntry, { base }: GroupRoute): EpisodeEntry {
  return attempts.find(({ sampleIndex }) => sampleIndex === base) ?? attempts[0]!;
}

interface Column {
  readonly entry: EpisodeEntry;
  readonly base: EpisodeEntry;
}

function column(app: ViewerApp, route: GroupRoute, { entry, base }: Column): TemplateResult {
  const { rolloutId, sampleIndex, rowCount, turnCount, sampledTokenCount } = entry;
  const isBase = entry === base;
  const link = linkTo(episodeRoute(route.run, rolloutId));
  const parting = isBase ? undefined : findParting(app, route, entry, base);
  return html`<article class="column ${isBase ? "base" : ""}" data-attempt=${sampleIndex}>
    <header>
      <button
        type="button"
        class="attempt-number"
        aria-pressed=${isBase}
        title="compare the others with this one"
        @click=${() => app.go({ ...route, base: sampleIndex })}
      >
        #${sampleIndex}
      </button>
      ${rewardBadge(entry)} ${endOf(entry)}
      <a class="button" href=${link}>open</a>
      ${forkWords(app, route, entry)}
      <p class="faint">
        ${rowCount > 1 ? html`${formatNumber(rowCount)} rows ·` : nothing}
        ${countOf(turnCount, "turn")} · ${formatNumber(sampledTokenCount)} sampled ·
        ${countOf(entry.toolCallCount, "call")} · ${entry.formatErrorCount} malformed ·
        ${formatDuration(entry.durationMs)}
      </p>
      ${partingWords(app, route, { entry, base, parting })}
    </header>
    ${whenReady(app.episode({ run: route.run, episode: rolloutId }), (row) =>
      "isLive" in row
        ? html``
        : columnTurns(app, row, {
            partingTurn: parting?.turnIndex,
            onSelect: (turn) => app.go({ ...episodeRoute(route.run, rolloutId), turn }),
          }),
    )}
  </article>`;
}

/** Names the attempt of which this one is a fork. */
function forkWords(
  app: ViewerApp,
  { run }: GroupRoute,
  { forkedFrom }: EpisodeEntry,
): TemplateResult | typeof nothing {
  if (forkedFrom === undefined) return nothing;
  const { rolloutId, turnIndex } = forkedFrom;
  const list = app.list(run);
  const entries = list.state === "ready" ? list.value.entries : [];
  if (list.state === "ready" && isForkOfOther(list.value.facts)) {
    return html`<p class="forked">
      ⑂ forked from ${visibleText(rolloutId)} of another run at turn ${turnIndex}; what is before it
      is trained there
    </p>`;
  }
  const parent = entries.find((other) => other.rolloutId === rolloutId);
  const name = parent === undefined ? visibleText(rolloutId) : `#${parent.sampleIndex}`;
  const link = linkTo({ ...episodeRoute(run, rolloutId), turn: turnIndex });
  return html`<p class="forked">
    ⑂ forked from <a href=${link}>${name}</a> at turn ${turnIndex}; what is before it is trained
    there
  </p>`;
}

/** The position at which an attempt differs from another. */
interface Parting {
  /** The first token that differs. `undefined` while the rows are loading, and if they are equal. */
  readonly token?: number;
  readonly turnIndex?: number;
  readonly isEqual?: true;
  readonly message?: string;
  readonly rows?: { readonly own: RowView; readonly other: RowView };
}

function findParting(
  app: ViewerApp,
  { run }: GroupRoute,
  entry: EpisodeEntry,
  base: EpisodeEntry,
): Parting {
  for (const each of [entry, base]) {
    if (each.tokenCount === 0) return { message: `#${each.sampleIndex} has no training row` };
  }
  const own = app.row({ run, episode: entry.rolloutId }, 0);
  const other = app.row({ run, episode: base.rolloutId }, 0);
  for (const row of [own, other]) if (row.state === "failed") return { message: row.message };
  if (own.state !== "ready" || other.state !== "ready") return {};
  const token = firstDifference(own.value.ids, other.value.ids);
  const rows = { own: own.value, other: other.value };
  if (token === undefined) return { isEqual: true, rows };
  const turn =
    token < own.value.tokenCount ? own.value.turnAt(token) : own.value.header.turns.at(-1);
  return { token, rows, ...(turn !== undefined && { turnIndex: turn.turnIndex }) };
}

const contextLength = 8;

function partingWords(
  app: ViewerApp,
  route: GroupRoute,
  about: Pick<Column, "entry" | "base"> & { readonly parting: Parting | undefined },
): TemplateResult {
  const { entry, base, parting } = about;
  if (parting === undefined) return html`<p class="parting">the one compared with</p>`;
  if (parting.message !== undefined) return html`<p class="parting">${parting.message}</p>`;
  if (parting.isEqual === true) {
    return html`<p class="parting">the same tokens as #${base.sampleIndex}</p>`;
  }
  const { token, turnIndex, rows } = parting;
  if (token === undefined || rows === undefined) return html`<p class="parting">reading…</p>`;
  const route2 = { ...episodeRoute(route.run, entry.rolloutId), token };
  const { own, other } = rows;
  return html`<p class="parting" data-token=${token}>
      differs from #${base.sampleIndex} at
      <a href=${linkTo(turnIndex === undefined ? route2 : { ...route2, turn: turnIndex })}
        >token ${formatNumber(token)}</a
      >${turnIndex === undefined ? ", in the prompt" : `, turn ${turnIndex}`}
    </p>
    <p class="parting-text">
      <span class="faint">${context(own, token - contextLength, token)}</span
      ><ins>${context(own, token, token + contextLength)}</ins> <br /><span class="faint"
        >#${base.sampleIndex}: </span
      ><del>${context(other, token, token + contextLength)}</del>
    </p>`;
}

function context({ texts, tokenCount }: RowView, start: number, end: number): string {
  const [from, to] = [Math.max(0, start), Math.min(end, tokenCount)];
  return from >= to ? "(the row ends)" : visibleText(texts.slice(from, to));
}

interface ColumnTurns {
  /** The turn at which the attempt differs from the one compared with. */
  readonly partingTurn: number | undefined;
  /** Called with a turn to show its tokens. */
  readonly onSelect: (turnIndex: number) => void;
}

function columnTurns(app: ViewerApp, row: EpisodeRow, { partingTurn, onSelect }: ColumnTurns) {
  const { reasons, ending } = verdictOf(row);
  return html`<p class="ending">${ending}</p>
    <ul class="reasons">
      ${reasons.map((reason) => html`<li>${reason}</li>`)}
    </ul>
    <ol class="column-turns">
      ${row.turns.map((turn) => {
        const { turnIndex, steps } = turn;
        return html`<li
          class=${[
            turnIndex === partingTurn ? "parts-here" : "",
            turnIndex < (row.forkedFrom?.turnIndex ?? 0) ? "trained-elsewhere" : "",
          ].join(" ")}
          data-turn=${turnIndex}
        >
          <div class="said said-agent">
            ${turnText(turn, { app, key: row.rolloutId, onSelect })}
          </div>
          ${shownSteps(row, { turnIndex, steps }).map(
            ({ source, observation, result, isError }, index) =>
              html`<div class="said ${source === "user" ? "said-user" : "said-tool"}">
                <span class="who">${visibleText(source)}</span>
                ${
                  result === "acted" && isError !== true
                    ? nothing
                    : html`<b class="warning">${result === "acted" ? "error" : result}</b>`
                }
                ${
                  observation === ""
                    ? html`<span class="faint">nothing</span>`
                    : longText(app, `${row.rolloutId} step ${turnIndex} ${index}`, observation)
                }
              </div>`,
          )}
        </li>`;
      })}
    </ol>`;
}

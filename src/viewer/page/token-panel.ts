import { html, nothing, type TemplateResult } from "lit/html.js";
import type { RowLineage } from "../../episode/row-lineage.ts";
import { isObject } from "../../values/is-object.ts";
import {
  differenceSteps,
  formatLogprob,
  formatProbability,
  heatOf,
  surpriseSteps,
} from "../model/heat.ts";
import type { Route, StripMode } from "../model/route.ts";
import type { RowView } from "../model/row-view.ts";
import { tokenKinds, type TokenKind } from "../model/token-kind.ts";
import { originWords, rowPlaceWords } from "../model/row-origin.ts";
import { tokenText, visibleText } from "../model/visible-text.ts";
import { columnPanel } from "./column-panel.ts";
import { teacherPanel } from "./teacher-panel.ts";
import { choice, copyText, formatNumber, isPlayed, whenReady } from "./parts.ts";
import { changeSearch, nextMatch, searchRow } from "./token-search.ts";
import type { StripContent } from "./token-strip.ts";
import type { ViewerApp } from "./viewer-app.ts";

type EpisodeRoute = Extract<Route, { page: "episode" }>;

/** The data of the panel. */
interface TokenPanelContent {
  readonly route: EpisodeRoute;
  readonly view: RowView;
}

const modes: readonly {
  readonly mode: StripMode;
  readonly label: string;
  readonly title: string;
}[] = [
  { mode: "mask", label: "Trained or not", title: "who wrote each token (m)" },
  {
    mode: "logprob",
    label: "Probability",
    title: "how likely the policy found what it sampled (m)",
  },
  { mode: "version", label: "Policy version", title: "which version sampled each token (m)" },
  {
    mode: "rescored",
    label: "Rescored",
    title: "how far the recorded logprobs are from those that the engine computes now (m)",
  },
];

/** Returns the colour schemes for a run's tokens. */
export function modesOf(app: ViewerApp, run: string): readonly StripMode[] {
  return modes.flatMap(({ mode }) => (mode !== "rescored" || app.canRescore(run) ? [mode] : []));
}

/** Renders a training row token by token, with a legend and the facts about the chosen token. */
export function tokenPanel(
  app: ViewerApp,
  { route: asked, view }: TokenPanelContent,
): TemplateResult {
  const search = searchRow(app, { route: asked, view });
  // A link may name a turn without a token.
  const turn = view.header.turns.find(({ turnIndex }) => turnIndex === asked.turn);
  const route = asked.token === undefined && turn ? { ...asked, token: turn.start } : asked;
  const rescored = route.mode === "rescored" ? app.rescored(route, route.row) : undefined;
  if (rescored?.state === "ready") view.rescored = rescored.value;
  const isWaiting = rescored !== undefined && rescored.state !== "ready";
  const content: StripContent = {
    view,
    mode: isWaiting ? "mask" : route.mode,
    selected: route.token,
    matches: search?.result.matches ?? [],
    match: search?.at ?? -1,
  };
  const offered = modesOf(app, route.run);
  const setMode = (mode: StripMode) => app.go({ ...route, mode }, { replace: true });
  return html`<section class="tokens" aria-label="tokens of the training row">
    ${rowHead(app, { route, view })}
    <div class="tools">
      <div class="choices" role="group" aria-label="colour tokens by">
        ${modes
          .filter(({ mode }) => offered.includes(mode))
          .map(({ mode, label, title }) =>
            choice(app, { label, title, isOn: route.mode === mode, choose: () => setMode(mode) }),
          )}
      </div>
      ${searchBox(app, { route, view })}
    </div>
    ${isWaiting ? whenReady(rescored, () => html``) : legend(app, { route, view })}
    ${
      view.header.piecesNote === undefined
        ? nothing
        : html`<p class="broken">Ids are shown: ${view.header.piecesNote}</p>`
    }
    <token-strip
      .content=${content}
      @token-select=${(event: CustomEvent<number>) => selectToken(app, { route, view }, event.detail)}
    ></token-strip>
    ${inspector(app, { route, view })} ${teacherPanel(app, { route, view })}
    ${columnPanel(app, { route, view })}
  </section>`;
}

/** Renders the place of the row in its attempt, if the attempt has several rows. */
function rowHead(app: ViewerApp, { route, view }: TokenPanelContent) {
  const { lineage } = view.header.metadata;
  if (!isObject(lineage)) return nothing;
  const { place, role, tokens } = rowPlaceWords({
    segment: route.row,
    trainedCount: view.header.turns.reduce((sum, { start, end }) => sum + end - start, 0),
    lineage: lineage as unknown as RowLineage,
  });
  const branches = app.branches(route);
  const from =
    branches.state === "ready"
      ? branches.value.find(({ row }) => row === route.row)?.from
      : undefined;
  return html`<p class="row-head">
    <b>${place}</b> ·
    ${visibleText(role)}${from === undefined ? nothing : `, ${visibleText(originWords(from))}`} ·
    ${tokens}
  </p>`;
}

/** Selects a token and its turn. */
export function selectToken(
  app: ViewerApp,
  { route, view }: TokenPanelContent,
  token: number,
): void {
  const { turn: _turn, token: _token, ...rest } = route;
  const turn = view.turnAt(token)?.turnIndex;
  app.go({ ...rest, token, ...(turn !== undefined && { turn }) }, { replace: true });
}

function searchBox(app: ViewerApp, { route, view }: TokenPanelContent): TemplateResult {
  const { search } = app;
  const count = search?.result.count ?? 0;
  return html`<form
    class="search"
    role="search"
    @submit=${(event: Event) => {
      event.preventDefault();
      nextMatch(app, { route, view }, 1);
    }}
  >
    <input
      type="search"
      class="token-search"
      placeholder="search text, or #ids  (/)"
      aria-label="search the row's text and the conversation, or ids after #"
      .value=${route.find ?? ""}
      @input=${(event: Event) =>
        changeSearch(app, { route, view }, (event.target as HTMLInputElement).value)}
    />
    <output class="search-count"
      >${
        search === undefined || search.query === ""
          ? ""
          : count === 0
            ? "nothing"
            : `${search.at + 1} of ${formatNumber(count)}`
      }</output
    >
  </form>`;
}

function legend(app: ViewerApp, { route, view }: TokenPanelContent): TemplateResult {
  const { mode } = route;
  if (mode === "logprob" || mode === "rescored") return heatLegend(view, mode);
  if (mode === "version") return versionLegend(view);
  const counts = view.counts();
  return html`<ul class="legend" aria-label="kinds of tokens">
    ${tokenKinds
      .filter(({ name }) => counts[name] > 0 || name === "sampled")
      .map(
        ({ name, letter, title, meaning }) =>
          html`<li class="kind-${name}" data-kind=${name}>
            <button
              type="button"
              title=${`${meaning}. Click: the next of them`}
              ?disabled=${counts[name] === 0}
              @click=${() => goToKind(app, { route, view }, name)}
            >
              <span class="swatch kind-${name}">${letter}</span> ${title}
              <b>${formatNumber(counts[name])}</b>
              ${
                view.header.isLive === true
                  ? nothing
                  : html`<span class="trained"
                      >${name === "sampled" ? "trained" : "not trained"}</span
                    >`
              }
            </button>
          </li>`,
      )}
    ${
      counts.droppedStops === 0
        ? nothing
        : html`<li class="kind-dropped" data-kind="dropped-stop">
            <span class="swatch dropped-stop">D</span> dropped stops
            <b>${formatNumber(counts.droppedStops)}</b>
          </li>`
    }
    ${
      view.interruptionCount === 0
        ? nothing
        : html`<li data-kind="resumed">
            <span class="swatch resumed">│</span> interrupted and resumed
            <b>${formatNumber(view.interruptionCount)}</b>
          </li>`
    }
    ${
      view.header.isLive === true
        ? html`<li class="agrees">
            ${
              isPlayed(app, route.run)
                ? "so far; the whole row comes when the episode ends"
                : "the run ended before the episode did: there is no training row"
            }
          </li>`
        : counts.disagreeing === 0
          ? html`<li class="agrees">the loss mask says the same, token by token</li>`
          : html`<li class="broken">
              the row's loss mask says otherwise at ${formatNumber(counts.disagreeing)} tokens
            </li>`
    }
  </ul>`;
}

/** Moves to the next part of a kind. After the last one, moves to the first. */
function goToKind(
  app: ViewerApp,
  { route, view }: TokenPanelContent,
  name: TokenKind["name"],
): void {
  const token = view.nextOfKind(name, route.token ?? -1);
  if (token !== undefined) selectToken(app, { route, view }, token);
}

function heatLegend(view: RowView, mode: "logprob" | "rescored"): TemplateResult {
  const steps = mode === "logprob" ? surpriseSteps : differenceSteps;
  const counts = steps.map(() => 0);
  for (const index of view.sampledIndexes()) {
    const value = mode === "logprob" ? -view.logprobAt(index) : view.differenceAt(index);
    counts[heatOf(value, steps)]! += 1;
  }
  const most = Math.max(...counts, 1);
  return html`<ul class="legend heat-legend" aria-label="how likely the sampled tokens were">
    ${steps.map(
      ({ label }, step) =>
        html`<li data-heat=${step}>
          <span class="bar" .style=${`height:${(counts[step]! / most) * 22 + 2}px`}></span>
          <span class="swatch heat-${step}">${label}</span>
          <b>${formatNumber(counts[step]!)}</b>
        </li>`,
    )}
    <li class="hint"><kbd>n</kbd> next worst, <kbd>p</kbd> back</li>
  </ul>`;
}

function versionLegend(view: RowView): TemplateResult {
  const counts = new Map<string, number>();
  for (const { start, end, version } of view.header.versions) {
    counts.set(version, (counts.get(version) ?? 0) + end - start);
  }
  return html`<ul class="legend" aria-label="policy versions">
    ${[...counts].map(
      ([version, count], place) =>
        html`<li data-version=${version}>
          <span class="swatch version-${place % 6}">${version === "" ? "unnamed" : version}</span>
          <b>${formatNumber(count)}</b>
        </li>`,
    )}
    ${
      counts.size > 1
        ? html`<li class="broken">the policy changed within this row</li>`
        : html`<li class="agrees">one version sampled all of it</li>`
    }
  </ul>`;
}

function inspector(app: ViewerApp, { route, view }: TokenPanelContent): TemplateResult {
  const { token } = route;
  if (token === undefined || token >= view.tokenCount) {
    return html`<div class="inspector empty" role="status">
      Click a token, or press <kbd>j</kbd> for the first turn, to see what is known of it.
    </div>`;
  }
  const { id, text, kind, isSpecial, mask, logprob, version, turn } = view.factsAt(token);
  const rescored = view.rescored?.[token];
  const isSampled = kind.name === "sampled";
  return html`<div class="inspector" role="status" aria-label="the chosen token">
    <span class="token-sample kind-${kind.name}">${tokenText(text) || "∅"}</span>
    <dl>
      ${item("token", formatNumber(token), "index")} ${item("id", String(id), "id")}
      ${item("kind", `${kind.letter} · ${kind.title}${isSpecial ? ", special" : ""}`, "kind")}
      ${item("loss mask", mask === 2 || view.header.isLive === true ? "none" : `${mask} · ${mask === 1 ? "trained" : "not trained"}`, "mask")}
      ${
        isSampled
          ? html`${item("logprob", formatLogprob(logprob), "logprob", String(logprob))}
            ${item("probability", formatProbability(logprob), "probability")}
            ${item("version", version === "" || version === undefined ? "unnamed" : version, "version")}`
          : nothing
      }
      ${rescored === undefined || !isSampled ? nothing : item("rescored", formatLogprob(rescored), "rescored", String(rescored))}
      ${
        turn === undefined
          ? nothing
          : item(isSampled ? "sampled in" : "answers", `turn ${turn.turnIndex}`, "turn")
      }
    </dl>
    <span class="copies">
      <button type="button" @click=${() => copyTurn(app, { route, view }, "text")}>
        copy text <kbd>c</kbd>
      </button>
      <button type="button" @click=${() => copyTurn(app, { route, view }, "ids")}>
        copy ids <kbd>i</kbd>
      </button>
    </span>
  </div>`;
}

/** Copies the text or the ids of the chosen turn, or of the complete row if no turn is chosen. */
export function copyTurn(
  app: ViewerApp,
  { route, view }: TokenPanelContent,
  what: "text" | "ids",
): void {
  const turn = view.header.turns.find(({ turnIndex }) => turnIndex === route.turn);
  const { start, end } = turn ?? { start: 0, end: view.tokenCount };
  const text =
    what === "text" ? view.texts.slice(start, end) : view.ids.subarray(start, end).join(" ");
  const named = turn === undefined ? "the row's" : `turn ${turn.turnIndex}'s`;
  void copyText(app, text, `${named} ${what}`);
}

/** Renders a fact. `exact` is the value with all its digits. */
function item(name: string, value: string, field: string, exact?: string): TemplateResult {
  return html`<div>
    <dt>${name}</dt>
    <dd data-field=${field} title=${exact ?? nothing}>${value}</dd>
  </div>`;
}

import { html, nothing, type TemplateResult } from "lit/html.js";
import type { LiveAnswer, LiveEpisode } from "../model/live-episode.ts";
import type { RowView } from "../model/row-view.ts";
import { visibleText } from "../model/visible-text.ts";
import { longText } from "./long-text.ts";
import { isPlayed } from "./parts.ts";
import type { ViewerApp } from "./viewer-app.ts";

/** The data of a running episode. */
interface LiveContent {
  readonly run: string;
  readonly live: LiveEpisode;
  readonly view: RowView;
  readonly selectedTurn: number | undefined;
}

/** Renders the turns and answers so far, as they were recorded. */
export function liveConversation(
  app: ViewerApp,
  { run, live, view, selectedTurn }: LiveContent,
  select: (turnIndex: number) => void,
): TemplateResult {
  const isOn = isPlayed(app, run);
  const answersTo = (wanted: number) =>
    live.answers
      .filter(({ turnIndex }) => turnIndex === wanted)
      .map((answer, index) =>
        answerEntry(app, `${live.rolloutId} ${wanted} ${index}`, { ...answer, isOn }),
      );
  return html`<ol class="conversation" aria-label="conversation">
    <li class="turn">${answersTo(-1)}</li>
    ${view.header.turns.map(
      ({ turnIndex, start, end }) =>
        html`<li
          class="turn ${turnIndex === selectedTurn ? "selected" : ""}"
          data-turn=${turnIndex}
        >
          <div class="said said-agent">
            <button type="button" class="turn-head" @click=${() => select(turnIndex)}>
              <span class="who">agent</span>
              <span class="facts">turn ${turnIndex} · ${end - start} sampled</span>
            </button>
            <div class="body">
              ${longText(app, `live ${live.rolloutId} ${turnIndex}`, view.texts.slice(start, end))}
            </div>
          </div>
          ${answersTo(turnIndex)}
        </li>`,
    )}
    ${messageTurns(live, view).map((index) => html`<li class="turn">${answersTo(index)}</li>`)}
  </ol>`;
}

/** Returns the turns that an engine returned as messages, which have no sampled ids. */
function messageTurns({ turnCount }: LiveEpisode, { header }: RowView): readonly number[] {
  const sampledCount = header.turns.length;
  const count = Math.max(turnCount - sampledCount, 0);
  return Array.from({ length: count }, (_, index) => sampledCount + index);
}

function answerEntry(
  app: ViewerApp,
  key: string,
  { what, text, isError, isOn }: LiveAnswer & { readonly isOn: boolean },
) {
  return html`<div class="said said-tool">
    <div class="who">
      ${visibleText(what)} ${isError ? html`<b class="warning">failed</b>` : nothing}
    </div>
    <div class="body">
      ${
        text === undefined
          ? html`<span class="faint"
              >${isOn ? "answered; shown when the episode ends" : "answered; in what words is not recorded"}</span
            >`
          : longText(app, key, text)
      }
    </div>
  </div>`;
}

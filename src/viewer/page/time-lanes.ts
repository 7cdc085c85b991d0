import { html, nothing, type TemplateResult } from "lit/html.js";
import type { TurnRecord } from "../../episode/episode.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { timeLanes, turnSum, turnTimes, type TimeLane } from "../model/turn-time.ts";
import { formatDuration } from "./parts.ts";

/** Renders the recorded time of each turn by party. */
export function timeTable(row: EpisodeRow, select: (turn: number) => void): TemplateResult {
  const { turns, durationMs } = row;
  const longest = Math.max(1, ...turns.map(turnSum));
  const sum = turns.reduce((total, turn) => total + turnSum(turn), 0);
  const measured = timeLanes.filter(({ name }) =>
    turns.some((turn) => turnTimes(turn)[name] !== undefined),
  );
  const has = (name: TimeLane["name"]): boolean => measured.some((lane) => lane.name === name);
  const notes = [
    ...(has("queue")
      ? []
      : [
          "this engine does not say how long requests waited in its queue: that is part of “engine”",
        ]),
    ...(has("user") ? [] : ["the user's time is part of “environment”"]),
  ];
  return html`<div class="lanes" tabindex="0" role="region" aria-label="time of each turn">
    <ul class="legend" aria-label="who took the time">
      ${measured.map(
        ({ name, title, meaning }) =>
          html`<li data-lane=${name} title=${meaning}>
            <span class="swatch lane-${name}"></span> ${title}
            <b>${formatDuration(laneSum(turns, name))}</b>
          </li>`,
      )}
      <li class="agrees">
        ${formatDuration(Math.max(0, durationMs - sum))} between the turns and around them
      </li>
    </ul>
    ${notes.length === 0 ? nothing : html`<p class="faint">${notes.join("; ")}</p>`}
    ${turns.length === 0 ? html`<p class="faint">There are no turns.</p>` : nothing}
    <table>
      <thead>
        <tr>
          <th></th>
          <th></th>
          ${measured.map(({ title }) => html`<th scope="col">${title}</th>`)}
          <th scope="col">tokens in → out</th>
        </tr>
      </thead>
      <tbody>
        ${turns.map((turn) => turnRow(turn, { measured, longest, select }))}
      </tbody>
    </table>
  </div>`;
}

function laneSum(turns: readonly TurnRecord[], name: TimeLane["name"]): number {
  return turns.reduce((sum, turn) => sum + (turnTimes(turn)[name] ?? 0), 0);
}

interface RowContent {
  readonly measured: readonly TimeLane[];
  readonly longest: number;
  readonly select: (turn: number) => void;
}

function turnRow(turn: TurnRecord, { measured, longest, select }: RowContent): TemplateResult {
  const { turnIndex, promptTokenCount, cachedTokenCount, sampledTokenCount } = turn;
  const times = turnTimes(turn);
  const width = (ms = 0): string => `width:${((ms / longest) * 100).toFixed(2)}%`;
  return html`<tr data-turn-time=${turnIndex}>
    <th scope="row">
      <button type="button" @click=${() => select(turnIndex)}>turn ${turnIndex}</button>
    </th>
    <td class="lane">
      ${measured.map(
        ({ name }) => html`<span class="lane-${name}" .style=${width(times[name])}></span>`,
      )}
    </td>
    ${measured.map(({ name }) => {
      const ms = times[name];
      return html`<td data-lane=${name}>${ms === undefined ? "–" : formatDuration(ms)}</td>`;
    })}
    <td class="faint">
      ${promptTokenCount}${cachedTokenCount === undefined ? "" : ` (${cachedTokenCount} cached)`} →
      ${sampledTokenCount}
    </td>
  </tr>`;
}

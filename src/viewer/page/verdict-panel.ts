import { html, nothing, type TemplateResult } from "lit/html.js";
import type { Difference, StateDifference } from "../../environment/state/difference.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { verdictOf } from "../model/verdict.ts";
import { visibleText } from "../model/visible-text.ts";
import { componentTable } from "./component-table.ts";
import { longText } from "./long-text.ts";
import { formatDuration, formatNumber } from "./parts.ts";
import type { ViewerApp } from "./viewer-app.ts";

const signs = { good: "✓", bad: "✗", mixed: "◐", failed: "✕", unscored: "–" } as const;

/** Renders the reasons for the episode's reward: the expected and the actual result. */
export function verdictPanel(app: ViewerApp, run: string, row: EpisodeRow): TemplateResult {
  const { tone, headline, ending, reasons, difference } = verdictOf(row, app.successThreshold(run));
  const { counts, failure, durationMs, userUsage, lineage } = row;
  return html`<section class="verdict verdict-${tone}" aria-label="why this reward">
    <div class="verdict-words">
      <h1><span class="sign" aria-hidden="true">${signs[tone]}</span> ${headline}</h1>
      <p class="ending">${ending}</p>
      ${
        reasons.length === 0
          ? nothing
          : html`<ul class="reasons">
              ${reasons.map((reason) => html`<li>${reason}</li>`)}
            </ul>`
      }
      ${
        failure === undefined
          ? nothing
          : html`<p class="failure">${longText(app, "failure", failure.message)}</p>`
      }
    </div>
    ${row.rewardComponents === undefined ? nothing : componentTable(row.rewardComponents)}
    ${difference === undefined ? nothing : differenceTable(difference)}
    <dl class="sums">
      ${fact("turns", formatNumber(counts.turnCount))}
      ${lineage === undefined ? nothing : fact("rows", formatNumber(lineage.filter((own) => own !== null).length))}
      ${fact("tool calls", formatNumber(counts.toolCallCount))}
      ${
        counts.tokenCount === 0
          ? fact("sampled tokens", formatNumber(counts.sampledTokenCount))
          : fact(
              "trained tokens",
              `${formatNumber(counts.sampledTokenCount)} of ${formatNumber(counts.tokenCount)}`,
            )
      }
      ${fact("time", formatDuration(durationMs))} ${fact("seed", String(row.seed))}
      ${userUsage.callCount === 0 ? nothing : fact("user's model", `${userUsage.callCount} calls`)}
    </dl>
  </section>`;
}

function fact(name: string, value: string): TemplateResult {
  return html`<div>
    <dt>${name}</dt>
    <dd>${value}</dd>
  </div>`;
}

function differenceTable(difference: Difference): TemplateResult {
  const { state, moreState = 0, missingCalls, extraCalls, missingOutputs } = difference;
  const count = state.length + missingCalls.length + extraCalls.length + missingOutputs.length;
  if (count === 0) return html`<p class="nothing-differs">Everything is as it was wanted.</p>`;
  return html`<div class="difference" tabindex="0" role="region" aria-label="wanted and reached">
    <table>
      <thead>
        <tr>
          <th>what</th>
          <th>wanted</th>
          <th>reached</th>
        </tr>
      </thead>
      <tbody>
        ${state.map(stateRow)}
        ${
          moreState === 0
            ? nothing
            : html`<tr>
                <td colspan="3">${moreState} more places</td>
              </tr>`
        }
        ${missingCalls.map((call) =>
          differenceRow("call", `${call.name} ${call.argumentsText}`, "never called"),
        )}
        ${extraCalls.map(({ name, argumentsText, error }) =>
          differenceRow(
            "call",
            "not wanted",
            `${name} ${argumentsText}${error === undefined ? "" : ` (refused: ${error})`}`,
          ),
        )}
        ${missingOutputs.map((output) => differenceRow("said to the user", output, "never said"))}
      </tbody>
    </table>
  </div>`;
}

function stateRow(difference: StateDifference): TemplateResult {
  const { table, record, field, note } = difference;
  const place = `${table} ${record}${field === "" ? "" : ` · ${field}`}`;
  const wanted = "wanted" in difference ? JSON.stringify(difference.wanted) : "nothing";
  const got = "got" in difference ? JSON.stringify(difference.got) : "nothing";
  return differenceRow(place, wanted, note === undefined ? got : `${got} (${note})`);
}

function differenceRow(what: string, wanted: string, reached: string): TemplateResult {
  return html`<tr>
    <th scope="row">${visibleText(what)}</th>
    <td class="wanted">${visibleText(wanted)}</td>
    <td class="reached">${visibleText(reached)}</td>
  </tr>`;
}

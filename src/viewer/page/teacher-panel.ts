import { html, nothing, type TemplateResult } from "lit/html.js";
import { formatProbability } from "../model/heat.ts";
import type { Route } from "../model/route.ts";
import type { RowView } from "../model/row-view.ts";
import { differenceWords, type TeacherToken } from "../model/teacher-token.ts";
import { visibleText } from "../model/visible-text.ts";
import { idTable } from "./column-panel.ts";
import { whenReady } from "./parts.ts";
import type { ViewerApp } from "./viewer-app.ts";

/** The data of the panel. */
interface TeacherPanelContent {
  readonly route: Extract<Route, { page: "episode" }>;
  readonly view: RowView;
}

/** Renders the logprobs of a run's teachers for the chosen token, with the ids that each found most probable. */
export function teacherPanel(
  app: ViewerApp,
  { route, view }: TeacherPanelContent,
): TemplateResult | typeof nothing {
  const { token } = route;
  const hasTeachers = app.teachers(route.run).length > 0 && app.source.teacherToken !== undefined;
  if (!hasTeachers || view.header.isLive === true) return nothing;
  if (token === undefined || token >= view.tokenCount) return nothing;
  return html`<section class="side-columns" aria-label="teachers of the token">
    <div class="column-heads"><span class="faint">teachers</span></div>
    ${whenReady(app.teacherToken(route, route.row, token), (found) =>
      found.length === 0
        ? html`<p class="faint" data-field="teacher">
            No teacher scored token ${token}: it belongs to the prompt, or its row was left out.
          </p>`
        : html`<div class="open-columns">${found.map((own) => teacher(own, view, token))}</div>`,
    )}
  </section>`;
}

function teacher(
  { name, logprob, top, isOutdated }: TeacherToken,
  view: RowView,
  token: number,
): TemplateResult {
  const difference = view.isSampledAt(token)
    ? `, ${differenceWords(logprob, view.logprobAt(token))}`
    : "";
  return html`<section class="open-column" aria-label=${`teacher ${name}`} data-teacher=${name}>
    <h3>${visibleText(name)}</h3>
    <p data-field="teacher">${logprob.toFixed(4)} (${formatProbability(logprob)})${difference}</p>
    ${
      isOutdated === true
        ? html`<p class="broken">The row has changed since: turnwright score scores it again.</p>`
        : nothing
    }
    ${
      top === undefined
        ? nothing
        : idTable(top, { title: `most probable ids by ${name}`, sampled: view.ids[token]! })
    }
  </section>`;
}

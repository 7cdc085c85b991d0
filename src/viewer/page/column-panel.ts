import { html, nothing, type TemplateResult } from "lit/html.js";
import { isOfAllTokens, namesOf, type ColumnName } from "../../columns/column-specs.ts";
import { formatBytes } from "../../text/format-bytes.ts";
import { formatProbability } from "../model/heat.ts";
import type { Route } from "../model/route.ts";
import type { RowView } from "../model/row-view.ts";
import {
  columnWords,
  formatParts,
  isDenseLayer,
  partAt,
  sideColumnsOf,
  spellPieces,
  type ColumnCheck,
  type SideColumn,
  type TokenColumn,
} from "../model/side-columns.ts";
import { visibleText } from "../model/visible-text.ts";
import { formatNumber, whenReady } from "./parts.ts";
import type { ViewerApp } from "./viewer-app.ts";

/** The data of the panel. */
interface ColumnPanelContent {
  readonly route: Extract<Route, { page: "episode" }>;
  readonly view: RowView;
}

/** Number of faults that are shown. */
const shownFaults = 5;

/** Renders the side columns of a row, and the values of the chosen token in the columns that are open. */
export function columnPanel(
  app: ViewerApp,
  content: ColumnPanelContent,
): TemplateResult | typeof nothing {
  const { route, view } = content;
  const { sideColumns, isLive } = view.header;
  const specs = app.columnSpecs(route.run);
  if (isLive === true || (sideColumns === undefined && specs === undefined)) return nothing;
  const columns = sideColumnsOf(sideColumns ?? {});
  const absent = namesOf(specs ?? {}).filter((name) =>
    columns.every((column) => column.name !== name),
  );
  const hasBytes = app.source.tokenColumn !== undefined;
  const open = hasBytes ? columns.filter(({ name }) => app.openColumns.has(name)) : [];
  return html`<section class="side-columns" aria-label="side columns of the row">
    <div class="column-heads">
      <span class="faint">side columns</span>
      ${columns.map((column) => columnHead(app, column, hasBytes))}
      ${absent.map(
        (name) => html`<span class="broken">the row has no ${columnWords[name].title}</span>`,
      )}
      ${
        hasBytes || columns.length === 0
          ? nothing
          : html`<span class="faint" data-field="no-bytes"
              >their values are not in this file: they are in the run's folder</span
            >`
      }
    </div>
    ${
      open.length === 0
        ? nothing
        : html`<div class="open-columns">
            ${open.map((column) => openColumn(app, content, column))}
          </div>`
    }
  </section>`;
}

function columnHead(
  app: ViewerApp,
  { name, byteCount }: SideColumn,
  hasBytes: boolean,
): TemplateResult {
  const { title, meaning } = columnWords[name];
  const size = html`<span class="faint">${formatBytes(byteCount)}</span>`;
  if (!hasBytes) {
    return html`<span title=${meaning} data-column=${name}>${title} ${size}</span>`;
  }
  const isOpen = app.openColumns.has(name);
  return html`<button
    type="button"
    class="column-head"
    aria-expanded=${isOpen}
    title=${meaning}
    data-column=${name}
    @click=${() => {
      if (isOpen) app.openColumns.delete(name);
      else app.openColumns.add(name);
      app.update();
    }}
  >
    ${title} ${size}
  </button>`;
}

function openColumn(
  app: ViewerApp,
  { route, view }: ColumnPanelContent,
  { name, rowCount, partCount, byteCount }: SideColumn,
): TemplateResult {
  const { title, meaning } = columnWords[name];
  const place = { row: route.row, name };
  const rows = `${formatNumber(rowCount)} ${rowCount === 1 ? "row" : "rows"}`;
  return html`<section class="open-column" aria-label=${title} data-open=${name}>
    <h3 title=${meaning}>${title}</h3>
    <p class="faint">${rows} in ${formatParts(partCount)}, ${formatBytes(byteCount)}</p>
    ${whenReady(app.columnCheck(route, place), checkResult)}
    ${tokenValues(app, { route, view }, name)}
  </section>`;
}

function checkResult({ partCount, byteCount, faults }: ColumnCheck): TemplateResult {
  if (faults.length === 0) {
    const what = `${formatParts(partCount)}, ${formatBytes(byteCount)}`;
    return html`<p class="good" data-field="check">
      ✓ checked: ${what}, ${partCount === 1 ? "its hash holds" : "all hashes hold"}
    </p>`;
  }
  const more = faults.length - shownFaults;
  return html`<ul class="broken" data-field="check">
    ${faults.slice(0, shownFaults).map((fault) => html`<li>✗ ${fault}</li>`)}
    ${more > 0 ? html`<li>and ${formatNumber(more)} more parts</li>` : nothing}
  </ul>`;
}

function tokenValues(
  app: ViewerApp,
  { route, view }: ColumnPanelContent,
  name: ColumnName,
): TemplateResult {
  const { token } = route;
  if (token === undefined || token >= view.tokenCount) {
    return html`<p class="faint">Choose a token to see its values.</p>`;
  }
  const hasRow =
    partAt(view.header.sideColumns?.[name], token) !== undefined &&
    (isOfAllTokens(name) || view.isSampledAt(token));
  if (!hasRow) {
    return html`<p class="faint" data-field="values">
      ${
        isOfAllTokens(name)
          ? `Token ${formatNumber(token)} has no row: the engine did not compute it.`
          : `Token ${formatNumber(token)} has no row: it was not sampled.`
      }
    </p>`;
  }
  return whenReady(app.tokenColumn(route, { row: route.row, name }, token), (values) => {
    const { policyVersion } = values;
    return html`${
      values.kind === "layers"
        ? layerList(values)
        : idTable(values, { title: columnWords[name].title, sampled: view.ids[token]! })
    }
    ${
      policyVersion === ""
        ? nothing
        : html`<p class="faint">computed by version ${visibleText(policyVersion)}</p>`
    }`;
  });
}

function layerList({ layers, perToken }: TokenColumn & { kind: "layers" }): TemplateResult {
  const digits = String(Math.max(...layers.flat())).length;
  const longest = Math.max(...layers.map((ids) => ids.length));
  return html`<ol
    class="layers"
    data-field="values"
    tabindex="0"
    aria-label="ids by layer"
    .style=${`--layer-width:${longest * (digits + 1) + 5}ch`}
  >
    ${layers.map((ids, layer) => {
      const more = perToken - ids.length;
      return html`<li title=${`layer ${layer}`}>
        <b>${layer}</b>
        ${isDenseLayer(ids) ? html`<span class="faint">dense</span>` : ids.join(" ")}
        ${more > 0 ? html`<span class="faint">and ${formatNumber(more)} more</span>` : nothing}
      </li>`;
    })}
  </ol>`;
}

/** Renders the ids of a token's row with texts and logprobs. Marks the token itself. */
export function idTable(
  values: TokenColumn & { kind: "tokens" },
  { title, sampled }: { readonly title: string; readonly sampled: number },
): TemplateResult {
  const { ids, logprobs, count, pieces } = values;
  const texts = spellPieces(pieces);
  const own = ids.indexOf(sampled);
  const more = count - ids.length;
  return html`<div class="ids" data-field="values" tabindex="0" role="region" aria-label=${title}>
    <table>
      <thead>
        <tr>
          <th>text</th>
          <th>id</th>
          ${
            logprobs === undefined
              ? nothing
              : html`<th>logprob</th>
                  <th>probability</th>`
          }
        </tr>
      </thead>
      <tbody>
        ${ids.map(
          (id, place) =>
            html`<tr
              class=${place === own ? "own" : ""}
              title=${place === own ? "the sampled token" : nothing}
            >
              <td class="text">${texts.get(id) ?? ""}</td>
              <td>${id}</td>
              ${
                logprobs === undefined
                  ? nothing
                  : html`<td>${logprobs[place]!.toFixed(4)}</td>
                      <td>${formatProbability(logprobs[place]!)}</td>`
              }
            </tr>`,
        )}
      </tbody>
    </table>
    ${more > 0 ? html`<p class="faint">and ${formatNumber(more)} more</p>` : nothing}
    ${
      own >= 0 || more > 0
        ? nothing
        : html`<p class="faint">The sampled token ${sampled} is not among them.</p>`
    }
  </div>`;
}

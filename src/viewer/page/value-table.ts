import { html, nothing, type TemplateResult } from "lit/html.js";
import { flattenValue } from "../model/flatten-value.ts";
import { visibleText } from "../model/visible-text.ts";
import { longText } from "./long-text.ts";
import type { ViewerApp } from "./viewer-app.ts";
import { formatCount } from "../../text/format-count.ts";

/**
 * Renders the values within a value as a table.
 *
 * @param key - The table's name, which identifies its expanded texts.
 */
export function valueTable(app: ViewerApp, key: string, value: unknown): TemplateResult {
  const { values, rest } = flattenValue(value);
  return html`<table class="values">
    <tbody>
      ${values.map(
        ({ path, text }) =>
          html`<tr>
            <th scope="row">${path.map(visibleText).join(" · ")}</th>
            <td>${longText(app, `${key} ${path.join(" ")}`, text)}</td>
          </tr>`,
      )}
      ${
        rest === 0
          ? nothing
          : html`<tr>
              <td colspan="2">${formatCount(rest)} more values</td>
            </tr>`
      }
    </tbody>
  </table>`;
}

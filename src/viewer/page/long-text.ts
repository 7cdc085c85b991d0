import { html, nothing, type TemplateResult } from "lit/html.js";
import { visibleText } from "../model/visible-text.ts";
import type { ViewerApp } from "./viewer-app.ts";

const firstLength = 3_000;
const moreLength = 50_000;

/**
 * Renders untrusted text as plain text. Shows the beginning of a long text, with a button for more.
 */
export function longText(app: ViewerApp, key: string, text: string): TemplateResult {
  const length = app.opened.get(key) ?? firstLength;
  const shown = text.length <= length ? text : text.slice(0, length);
  const rest = text.length - shown.length;
  return html`<span class="text">${visibleText(shown)}</span>${
      rest === 0
        ? nothing
        : html`<button
            type="button"
            class="more"
            @click=${() => {
              app.opened.set(key, length + moreLength);
              app.update();
            }}
          >
            … ${rest.toLocaleString("en-US")} more characters
          </button>`
    }`;
}

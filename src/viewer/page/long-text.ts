import { html, nothing, type TemplateResult } from "lit/html.js";
import { findHits } from "../model/lists/find-hits.ts";
import { markedText } from "./marked-text.ts";
import type { ViewerApp } from "./viewer-app.ts";
import { formatCount } from "../../text/format-count.ts";

const firstLength = 3_000;
const moreLength = 50_000;

/** The length of the text after a hit that is shown with it. */
const afterHit = 500;

/**
 * Renders untrusted text as plain text, with the hits of the search in the episode marked. Shows the beginning of a
 * long text up to its first hit, with a button for more.
 */
export function longText(app: ViewerApp, key: string, text: string): TemplateResult {
  const { find } = app;
  const places = findHits(text, find);
  const opened = app.opened.get(key) ?? firstLength;
  const [first] = places;
  const length = first === undefined ? opened : Math.max(opened, first + find.length + afterHit);
  const shown = text.length <= length ? text : text.slice(0, length);
  const rest = text.length - shown.length;
  const hidden = places.filter((place) => place + find.length > shown.length).length;
  return html`<span class="text">${markedText(shown, find)}</span>${
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
            … ${formatCount(rest)} more
            characters${hidden === 0 ? "" : `, ${formatCount(hidden)} hits`}
          </button>`
    }`;
}

/** True if a text has a hit of the search in the episode. */
export function hasHit(app: ViewerApp, text: string): boolean {
  return findHits(text, app.find).length > 0;
}

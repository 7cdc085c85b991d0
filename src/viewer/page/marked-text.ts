import { html, type TemplateResult } from "lit/html.js";
import { findHits } from "../model/lists/find-hits.ts";
import { visibleText } from "../model/visible-text.ts";

/** Renders untrusted text as plain text, with the hits of a search marked. */
export function markedText(text: string, find: string): string | TemplateResult {
  const places = findHits(text, find);
  if (places.length === 0) return visibleText(text);
  const parts: (string | TemplateResult)[] = [];
  let end = 0;
  for (const place of places) {
    const hit = text.slice(place, place + find.length);
    parts.push(visibleText(text.slice(end, place)), html`<mark>${visibleText(hit)}</mark>`);
    end = place + find.length;
  }
  return html`${parts}${visibleText(text.slice(end))}`;
}

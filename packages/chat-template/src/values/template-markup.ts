import { strOf } from "./template-text.ts";
import type { TemplateValue } from "./template-value.ts";
import { Markup } from "./template-value.ts";

const entities: ReadonlyMap<string, string> = new Map([
  ["&", "&amp;"],
  [">", "&gt;"],
  ["<", "&lt;"],
  ["'", "&#39;"],
  ['"', "&#34;"],
]);

/**
 * The value's text as safe HTML; a safe text stays unchanged.
 *
 * **Source:** MarkupSafe 3, `markupsafe.escape`.
 */
export function escapeHtml(value: TemplateValue): Markup {
  return value instanceof Markup ? value : escapeAlways(strOf(value));
}

/** The text as safe HTML. */
export function escapeAlways(text: string): Markup {
  return new Markup(text.replace(/[&<>'"]/g, (character) => entities.get(character) as string));
}

/** Joins the values to one text. If one is marked as safe, the others are escaped and the result is safe. */
export function joinMarkup(values: readonly TemplateValue[]): string | Markup {
  if (!values.some((value) => value instanceof Markup)) return values.map(strOf).join("");
  return new Markup(values.map((value) => escapeHtml(value).text).join(""));
}

/** `text`, marked as safe if `like` is. */
export function textLike(like: TemplateValue, text: string): string | Markup {
  return like instanceof Markup ? new Markup(text) : text;
}

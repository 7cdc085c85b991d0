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
 * The value's text as safe HTML; what is marked as safe already stays as it is.
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

/** `text` of the same kind as `like`: marked as safe where that is. */
export function textLike(like: TemplateValue, text: string): string | Markup {
  return like instanceof Markup ? new Markup(text) : text;
}

import { html, nothing, type TemplateResult } from "lit/html.js";

/** A column's heading that sorts a list. */
interface SortHead {
  readonly field: { readonly name: string; readonly title: string; readonly meaning: string };
  /** The current order: a field's name, with a leading `-` if it is descending. */
  readonly order: string;
  /** Called with the new order. */
  readonly sort: (order: string) => void;
}

/** Returns the value of `aria-sort` for a column. */
export function ariaSort({ field, order }: Pick<SortHead, "field" | "order">) {
  if (order === field.name) return "ascending";
  return order === `-${field.name}` ? "descending" : nothing;
}

/** Renders a button that sorts by a field: first ascending, then descending. */
export function sortHead({ field, order, sort }: SortHead): TemplateResult {
  const { name, title, meaning } = field;
  const isUp = order === name;
  return html`<button
    type="button"
    class="sort"
    title=${`${meaning} · click: sort · in filters: ${name}`}
    @click=${() => sort(isUp ? `-${name}` : name)}
  >
    ${title}${isUp ? " ▲" : order === `-${name}` ? " ▼" : ""}
  </button>`;
}

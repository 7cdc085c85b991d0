import { html, nothing, type TemplateResult } from "lit/html.js";
import { visibleText } from "../../model/visible-text.ts";
import { filterWords, quoted, toggleWord, type ListField } from "../../model/lists/list-fields.ts";

/** A filter of a list. */
interface FilterBox {
  readonly filter: string;
  readonly fields: readonly Pick<ListField<never>, "name" | "meaning">[];
  /** An example, which the empty field shows. */
  readonly example: string;
  /** The texts in which a word without a condition is searched. */
  readonly searched: string;
  /** Conditions to choose with a click. */
  readonly suggested?: readonly string[];
  /** Called with the new filter. */
  readonly change: (filter: string, options?: { readonly isTyped: boolean }) => void;
}

/** Renders the field of a filter, conditions to choose, and a list of the fields that it knows. */
export function filterBox(box: FilterBox): TemplateResult {
  const { filter, example, suggested = [], change } = box;
  return html`<span class="filter">
    <input
      type="search"
      class="filter-input"
      placeholder=${`filter: ${example}  (/)`}
      aria-label=${`filter, by words and by conditions such as ${example}`}
      .value=${filter}
      @input=${(event: Event) => change((event.target as HTMLInputElement).value, { isTyped: true })}
    />
    ${suggested.map(
      (word) =>
        html`<button
          type="button"
          class="chip"
          aria-pressed=${filterWords(filter).includes(word)}
          @click=${() => change(toggleWord(filter, word))}
        >
          ${word}
        </button>`,
    )}
    ${filterHelp(box)}
  </span>`;
}

function filterHelp({ fields, searched, filter, change }: FilterBox): TemplateResult {
  return html`<details class="filter-help">
    <summary>how to filter</summary>
    <div>
      <p>
        Blanks separate conditions, and all must hold. A word without a condition is searched in
        ${searched}. Letter case does not count. Quotation marks keep words together.
      </p>
      <p>
        <code>=</code> <code>!=</code> <code>&lt;</code> <code>&lt;=</code> <code>&gt;</code>
        <code>&gt;=</code> compare; <code>:</code> finds a part of a text; <code>=none</code> finds
        what has no value. A heading sorts its column; a second click turns the order.
      </p>
      <dl>
        ${fields.map(
          ({ name, meaning }) =>
            html`<div>
              <dt>
                <button type="button" @click=${() => change(`${filter} ${quoted(name)}=`.trim())}>
                  ${name}
                </button>
              </dt>
              <dd>${meaning}</dd>
            </div>`,
        )}
      </dl>
    </div>
  </details>`;
}

/** Names the words of a filter that could not be read. */
export function filterProblems(problems: readonly string[]) {
  return problems.length === 0
    ? nothing
    : html`<p class="broken" role="alert">In the filter, ${visibleText(problems.join("; "))}.</p>`;
}

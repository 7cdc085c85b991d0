import { html, type TemplateResult } from "lit/html.js";
import type { RewardComponents } from "../../environment/reward-parts.ts";
import { visibleText } from "../model/visible-text.ts";
import { formatNumber } from "./parts.ts";

/** Renders the components of a reward: value, weight, and the part of the reward. */
export function componentTable(components: RewardComponents): TemplateResult {
  return html`<table class="values numbers components">
    <thead>
      <tr>
        <th>component</th>
        <th>value</th>
        <th>weight</th>
        <th>part of the reward</th>
      </tr>
    </thead>
    <tbody>
      ${Object.entries(components).map(
        ([name, { value, weight }]) =>
          html`<tr data-component=${name}>
            <th scope="row">${visibleText(name)}</th>
            <td>${formatNumber(value)}</td>
            <td>${formatNumber(weight)}</td>
            <td>${formatNumber(value * weight)}</td>
          </tr>`,
      )}
    </tbody>
  </table>`;
}

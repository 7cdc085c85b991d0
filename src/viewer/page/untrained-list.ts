import { html, nothing, type TemplateResult } from "lit/html.js";
import type { UntrainedTurn } from "../model/untrained-turn.ts";
import { visibleText } from "../model/visible-text.ts";
import { formatNumber } from "./parts.ts";

/** The most turns that are listed. */
const maxListed = 50;

const statusWords: Readonly<Record<UntrainedTurn["status"], string>> = {
  rejected: "rejected",
  undelivered: "not delivered",
  "left-out": "left out",
};

/** Renders the turns that no row trains, with their number and the evidence for each. */
export function untrainedList(turns: readonly UntrainedTurn[]): TemplateResult | typeof nothing {
  if (turns.length === 0) return nothing;
  const rest = turns.length - maxListed;
  return html`<p class="untrained faint">
      ${turns.length === 1 ? "1 more turn was" : `${formatNumber(turns.length)} more turns were`}
      sampled and ${turns.length === 1 ? "is" : "are"} not trained: ${reasonsOf(turns)}
    </p>
    <ul class="untrained-turns" aria-label="turns that are not trained">
      ${turns
        .slice(0, maxListed)
        .map(
          (turn) =>
            html`<li data-untrained=${turn.node} data-status=${turn.status}>
              ${untrainedWords(turn, placeWords(turn))}
            </li>`,
        )}
      ${rest > 0 ? html`<li class="faint">and ${formatNumber(rest)} more</li>` : nothing}
    </ul>`;
}

function reasonsOf(turns: readonly UntrainedTurn[]): string {
  const count = (wanted: UntrainedTurn["status"]) =>
    turns.filter(({ status }) => status === wanted).length;
  return (
    [
      [count("rejected"), "rejected (not continued)"],
      [count("undelivered"), "never reached the client"],
      [count("left-out"), "sampled for another model, or of a row that is left out"],
    ] as const
  )
    .filter(([number]) => number > 0)
    .map(([number, words]) => `${formatNumber(number)} ${words}`)
    .join("; ");
}

/** Describes the place of a turn by its link or, without one, by the trained turn before it. */
function placeWords({ link, after }: UntrainedTurn): string {
  return link ?? (after === undefined ? "" : `after turn ${after}`);
}

/** Describes a turn that no row trains: its status, its role, its place, its tokens and the evidence. */
export function untrainedWords(
  { status, role, sampledTokenCount, reason }: UntrainedTurn,
  place: string,
): TemplateResult {
  const facts = [
    [role, place].filter((part) => part !== undefined && part !== "").join(", "),
    `${formatNumber(sampledTokenCount)} ${sampledTokenCount === 1 ? "token" : "tokens"}`,
    reason,
  ].filter((fact) => fact !== "");
  return html`<b class="status status-${status}">${statusWords[status]}, not trained</b>
    ${visibleText(facts.join(" · "))}`;
}
